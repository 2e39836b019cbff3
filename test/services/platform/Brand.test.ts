import { assert, describe, it } from "@effect/vitest"
import { contrast, defaultShades, shadesOf } from "../../../services/platform/Brand.ts"
import { notificationTemplate } from "../../../services/notifications/NotificationMail.ts"
import { rendered } from "../../../services/platform/mail/MailLayout.ts"
import { Effect } from "effect"

const colors = [
  "#000000",
  "#ffffff",
  "#ffff00",
  "#ff0000",
  "#00ff00",
  "#0000ff",
  "#777777",
  "#0550ae",
  "#79b8ff",
  "#e6007e",
]

describe("the brand's colour", () => {
  it("becomes shades whose contrast is 4.5 to 1, whatever the colour", () => {
    for (const color of colors) {
      const { dark, light } = shadesOf(color)
      for (const page of ["#ffffff", "#f4f5f7"]) assert.isAtLeast(contrast(light, page), 4.5, `${color} on ${page}`)
      for (const page of ["#14171a", "#1d2126", "#0b1a2b"]) {
        assert.isAtLeast(contrast(dark, page), 4.5, `${color} on ${page}`)
      }
    }
  })

  it("stays as it is where it can be read", () => {
    assert.strictEqual(shadesOf("#0550ae").light, defaultShades.light)
    assert.strictEqual(shadesOf("#79b8ff").dark, defaultShades.dark)
    assert.strictEqual(contrast("#000000", "#ffffff").toFixed(1), "21.0")
  })
})

describe("a mail of a branded installation", () => {
  const brand = { name: "Acme <Mail> & Co", shades: shadesOf("#ffff00"), logo: null }

  it("has the name in its text and its document, and the colour on its button", () => {
    const letter = { subject: "A", paragraphs: ["One."], link: { label: "Open", href: "https://a.example/" } }
    const branded = rendered(letter, brand)
    assert.strictEqual(branded.text, "One.\n\nOpen:\nhttps://a.example/\n\n-- \nAcme <Mail> & Co\n")
    assert.include(branded.html, "Acme &lt;Mail&gt; &amp; Co")
    assert.include(branded.html, `background:${brand.shades.light}`)
    const plain = rendered(letter)
    assert.notInclude(plain.text + plain.html, "Bailiwick")
    assert.include(plain.html, `background:${defaultShades.light}`)
  })

  it.effect("says it in a notification, too", () =>
    Effect.gen(function* () {
      const template = notificationTemplate(new URL("https://mail.example"), brand)
      const args = { title: "T", body: "B", href: "/", severity: "info" }
      const mail = yield* template.render({ id: "m1", subjectId: "n1", recipient: "a@example.com", args })
      assert.isTrue(mail!.text.endsWith("\n-- \nAcme <Mail> & Co\n"))
      assert.include(mail!.html, "Acme &lt;Mail&gt; &amp; Co")
    }))
})
