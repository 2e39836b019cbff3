/**
 * The installation's brand in the browser: `/brand.css` with its colour, `/brand/logo`, and the head of each page that
 * PageLayout.ts makes. A page is made without a brand; the server fills its two marks in, so no page has to know it.
 */
import { Effect, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerResponse } from "effect/http"
import { type BrandShape, isBranded } from "../../../services/platform/Brand.ts"
import { Html, html } from "../../../services/platform/mail/Html.ts"

export const brandStylePath = "/brand.css"
export const logoPath = "/brand/logo"

/** Where a page's head links the brand's sheet. */
export const styleMark = new Html("<!--brand-style-->")
/** Where a page's body shows the brand. */
export const headMark = new Html("<!--brand-->")

const sheetOf = ({ shades }: BrandShape): string =>
  (shades === null ? "" : `:root { --link: light-dark(${shades.light}, ${shades.dark}) }\n`) +
  `.brand-head { max-width: 36rem; margin: 0 auto; padding: 1rem 1rem 0; display: flex; gap: .6rem; align-items: center;
  font-weight: 650; overflow-wrap: anywhere }
.brand-head img { width: auto; height: 2rem; max-width: 10rem; object-fit: contain }
`

const headOf = ({ logo, name }: BrandShape): Html =>
  html`<header class="brand-head">${
    logo === null ? null : html`<img src="${logoPath}" alt="">`
  }<span>${name}</span></header>`

/** Fills the marks of a page; other answers stay as they are. */
export const brandedPages = (brand: BrandShape) => {
  const style = isBranded(brand) || brand.shades !== null
    ? html`<link rel="stylesheet" href="${brandStylePath}">`.text
    : ""
  const head = isBranded(brand) ? headOf(brand).text : ""
  return (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const { body } = response
    if (body._tag !== "Uint8Array" || !body.contentType.startsWith("text/html")) return response
    if (response.headers["content-encoding"] !== undefined) return response
    const text = new TextDecoder().decode(body.body)
    if (!text.includes(styleMark.text)) return response
    // A function, since a replacement text may hold a dollar sign.
    const filled = text.replace(styleMark.text, () => style).replace(headMark.text, () => head)
    return HttpServerResponse.setBody(response, HttpBody.text(filled, body.contentType))
  }
}

const cached = { "cache-control": "public, max-age=300" }

/** The sheet, and the logo where there is one. */
export const layer = (brand: BrandShape) => {
  const sheet = HttpServerResponse.text(sheetOf(brand), { contentType: "text/css; charset=utf-8", headers: cached })
  const { logo } = brand
  const image = logo && HttpServerResponse.uint8Array(logo.bytes, {
    contentType: logo.type,
    // Opened by itself, an SVG is a document: it gets no script and no origin.
    headers: { ...cached, "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox" },
  })
  return Layer.merge(
    HttpRouter.add("GET", brandStylePath, Effect.succeed(sheet)),
    image === null ? Layer.empty : HttpRouter.add("GET", logoPath, Effect.succeed(image)),
  )
}
