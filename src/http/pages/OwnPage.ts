/** The common parts of the landing page and of the pages behind mailed links of people. */
import { HttpServerResponse } from "effect/http"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { framed } from "./PageLayout.ts"
import { style } from "./TransferStyle.ts"

export const ownStylePath = "/page.css"

export const ownPage = framed(ownStylePath)

/** A page with one message. */
export const message = (title: string, text: string, status = 200, more: Html | null = null) =>
  ownPage({ title, body: html`<p>${text}</p>${more}`, status })

export const ownSheet = HttpServerResponse.text(style, {
  contentType: "text/css; charset=utf-8",
  headers: { "cache-control": "public, max-age=3600" },
})
