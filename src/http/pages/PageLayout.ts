/**
 * The layout of every page for people: no scripts, no content from other hosts, no caching, one style sheet of this
 * program.
 */
import { HttpServerResponse } from "effect/http"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { headMark, styleMark } from "./BrandedPages.ts"

const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
  "base-uri 'none'"

export interface Page {
  readonly title: string
  readonly body: Html
  /** 200 by default. */
  readonly status?: number
}

/** Makes pages with the style sheet at this path. */
export const framed = (stylePath: string) => ({ body, status, title }: Page): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(
    html`
      <!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <meta name="robots" content="noindex">
          <title>${title}</title>
          <link rel="stylesheet" href="${stylePath}">${styleMark}
        </head>
        <body>${headMark}
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
