import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { html } from "../../../../services/platform/mail/Html.ts"
import { visible } from "../../../../services/platform/Visible.ts"

const nasty = fc.array(fc.constantFrom("<", ">", "&", '"', "'", "script", "=", " ", "&lt;", "\0", "é", "${x}", "-->"))
  .map((all) => all.join(""))

const unescaped = (text: string) =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

describe("html", () => {
  it("keeps any value in its place, in text and in quoted attributes, and loses nothing of it", () => {
    fc.assert(fc.property(fc.oneof(nasty, fc.string()), (value) => {
      const { text } = html`<a title="${value}">${value}</a>`
      const [, attribute, content] = /^<a title="([^"<>]*)">([^"'<>]*)<\/a>$/s.exec(text) ?? []
      assert.strictEqual(attribute, content)
      assert.strictEqual(unescaped(content!), visible(value))
      assert.notMatch(content!.replaceAll(/&(amp|lt|gt|quot|#39);/g, ""), /&/)
    }))
  })

  it("escapes once, however deeply fragments are nested", () => {
    fc.assert(fc.property(fc.array(nasty, { minLength: 1 }), (values) => {
      const items = values.map((value) => html`<li>${value}</li>`)
      assert.strictEqual(
        html`<ul>${items}</ul>`.text,
        `<ul>${values.map((value) => html`<li>${value}</li>`.text).join("")}</ul>`,
      )
    }))
    assert.strictEqual(html`${html`<b>${"<"}</b>`}${null}${undefined}${false}${0}`.text, "<b>&lt;</b>0")
  })
})
