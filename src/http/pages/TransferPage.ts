/** The common parts of the pages behind mailed links. */
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { framed } from "./PageLayout.ts"

export const stylePath = "/transfers/style.css"

export const page = framed(stylePath)

/** A page with one message. */
export const saying = (title: string, text: string, status = 200, more: Html | null = null) =>
  page({ title, body: html`<p>${text}</p>${more}`, status })

/** Masks an address, `b***@birch.example`: its owner recognises it, and a stranger with the link cannot write to it. */
export const masked = (address: string | null): string => {
  const at = address?.lastIndexOf("@") ?? -1
  return address === null || at < 1 ? "***" : `${String.fromCodePoint(address.codePointAt(0)!)}***${address.slice(at)}`
}

const dates = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short", timeZone: "UTC" })

/** `10 March 2026 at 12:00 UTC`, of an instant in milliseconds or as the API writes it. */
export const when = (instant: number | string): string => `${dates.format(new Date(instant))} UTC`

const units = [["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]] as const

/** `24 hours`. */
export const span = (millis: number): string => {
  const [unit, size] = units.find(([, size]) => millis % size === 0) ?? units[2]
  const count = Math.ceil(millis / size)
  return `${count} ${unit}${count === 1 ? "" : "s"}`
}
