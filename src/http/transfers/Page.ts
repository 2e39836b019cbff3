/** The frame of the pages behind mailed links: no scripts, nothing from elsewhere, and nothing kept. */
import { HttpServerResponse } from "effect/http"
import { type Html, html } from "../../../services/platform/Html.ts"

const policy = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

export const stylePath = "/transfers/style.css"

export const page = ({ body, status, title }: {
  readonly title: string
  readonly body: Html
  readonly status?: number
}): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(
    html`
      <!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <meta name="robots" content="noindex">
          <title>${title}</title>
          <link rel="stylesheet" href="${stylePath}">
        </head>
        <body>
          <main>
      <h1>${title}</h1>
      ${body}
          </main>
        </body>
      </html>
    `.text,
    {
      status: status ?? 200,
      contentType: "text/html; charset=utf-8",
      headers: {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
      },
    },
  )

/** A page that says one thing. */
export const saying = (title: string, text: string, status = 200) => page({ title, body: html`<p>${text}</p>`, status })

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
