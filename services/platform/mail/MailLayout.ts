/** The layout of mails: paragraphs, a quotation, one link as a button. */
import { DateTime } from "effect"
import { type Html, html } from "./Html.ts"
import { type BrandShape, defaultBrand, defaultShades, isBranded } from "../Brand.ts"
import type { RenderedMail } from "./Mails.ts"

export interface MailLayout {
  readonly subject: string
  readonly paragraphs: ReadonlyArray<string>
  /** Text that a person wrote: shown as a quotation, never as the program's own words. */
  readonly quote?: string | null
  readonly link?: { readonly label: string; readonly href: string }
}

/** Puts text on one line: names come from outside, and a subject has one line. */
export const oneLine = (text: string) => text.replaceAll(/\s+/g, " ")

const quoted = (text: string) => text.split(/\r\n|\r|\n/).map((line) => `> ${line}`).join("\n")

/** A time as a letter names it, to the minute. */
export const when = (date: Date) =>
  `${DateTime.formatIso(DateTime.fromDateUnsafe(date)).slice(0, 16).replace("T", " ")} UTC`

/** The installation's name at the end of a mail's text, where it has one of its own. */
export const signature = (brand: BrandShape): string => isBranded(brand) ? `\n-- \n${oneLine(brand.name)}\n` : ""

/** The installation's name at the head of a mail, where it has one of its own. A mail loads no picture. */
export const mailHead = (brand: BrandShape): Html | null =>
  isBranded(brand)
    ? html`
      <p style="color:${(brand.shades ?? defaultShades).light};font-weight:bold">${brand.name}</p>
    `
    : null

const textOf = ({ link, paragraphs, quote }: MailLayout, brand: BrandShape) =>
  [
    ...paragraphs,
    ...(quote ? [quoted(quote)] : []),
    ...(link === undefined ? [] : [`${link.label}:\n${link.href}`]),
  ].join("\n\n") + "\n" + signature(brand)

/** The mail's one button. Its style stands in it, since mail programs drop sheets; its address is in the text as well. */
export const mailButton = ({ href, label }: NonNullable<MailLayout["link"]>, { shades }: BrandShape): Html =>
  html`
    <p><a href="${href}" style="display:inline-block;padding:0.75em 1.25em;border-radius:0.4em;background:${(shades ??
      defaultShades).light};color:#ffffff;font-weight:bold;text-decoration:none">${label}</a></p>
  `

const htmlOf = ({ link, paragraphs, quote, subject }: MailLayout, brand: BrandShape): Html =>
  html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <title>${subject}</title>
      </head>
      <body style="font-family:sans-serif;line-height:1.5;max-width:36em">
    ${mailHead(brand)}${paragraphs.map((paragraph) => html`<p>${paragraph}</p>\n`)}${quote
      ? html`<blockquote style="white-space:pre-wrap">${quote}</blockquote>\n`
      : null}${link === undefined ? null : mailButton(link, brand)}</body>
    </html>
  `

/** The letter as a mail, as text and as a document. */
export const rendered = (letter: MailLayout, brand: BrandShape = defaultBrand): RenderedMail => ({
  subject: letter.subject,
  text: textOf(letter, brand),
  html: htmlOf(letter, brand).text,
})
