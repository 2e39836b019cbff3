import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AccountId, NotificationId } from "../../../schemas/BrandedIds.ts"
import { notificationMail, notificationTemplate } from "../../../services/notifications/NotificationMail.ts"
import { notice } from "./NotificationFixture.ts"

describe("the mail of a notification", () => {
  it.effect("carries the notification's text and link, with all markup escaped", () =>
    Effect.gen(function* () {
      const said = notice(AccountId.make("a"), {
        title: `<b>"Hi"</b>`,
        body: "one & two\n<script>x</script>",
        href: "/d/1?a=1&b=2",
      })
      const mail = notificationMail(NotificationId.make("n1"), "a@example.com", said)
      assert.deepStrictEqual([mail.kind, mail.subjectId, mail.recipient], ["notification", "n1", "a@example.com"])
      const template = notificationTemplate(new URL("https://mail.example"))
      const { args, recipient, subjectId } = mail
      const rendered = yield* template.render({ id: "m1", subjectId, recipient, args })
      assert.strictEqual(rendered?.subject, said.title)
      assert.strictEqual(
        rendered?.text,
        `${said.title}\n\none & two\n<script>x</script>\n\nhttps://mail.example/d/1?a=1&b=2\n`,
      )
      assert.include(rendered!.html, "<p>one &amp; two</p>")
      assert.include(rendered!.html, `<a href="https://mail.example/d/1?a=1&amp;b=2" style="`)
      assert.isFalse(/<script|<b>/.test(rendered!.html))
    }))

  it.effect("links into the app and nowhere else", () =>
    Effect.gen(function* () {
      const template = notificationTemplate(new URL("https://mail.example"))
      const { args } = notificationMail(
        NotificationId.make("n1"),
        "a@example.com",
        notice(AccountId.make("a"), { href: "/" }),
      )
      const rendered = yield* template.render({ id: "m1", subjectId: "n1", recipient: "a@example.com", args })
      assert.include(rendered!.text, "\nhttps://mail.example/\n")
    }))
})
