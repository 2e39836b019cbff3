import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Queue, Redacted, Schedule, Scope } from "effect"
import { html } from "../../../../services/platform/mail/Html.ts"
import { parseSender } from "../../../../services/platform/mail/MailSender.ts"
import { MailTransport, type OutgoingMail } from "../../../../services/platform/mail/MailTransport.ts"
import { type Behaviour, testSmtp } from "../../../support/TestSmtp.ts"

const from = { name: 'Bäiliwick, "Mail"', address: "no-reply@mail.example" }
let n = 0
const mail = (fields: Partial<OutgoingMail> = {}): OutgoingMail => ({
  id: `m${++n}`,
  messageId: `<m${n}@mail.example>`,
  recipient: "bob@example.com",
  subject: "Hello",
  text: "Hello\n",
  html: "<p>Hello</p>",
  date: new Date("2026-01-02T03:04:05Z"),
  ...fields,
})

const transportTo = (url: string) =>
  Effect.map(
    Layer.build(MailTransport.smtp({ url: Redacted.make(url), from, connections: 2 })),
    (context) => Context.get(context, MailTransport),
  )

const fixture = Effect.gen(function* () {
  const smtp = yield* testSmtp()
  const transport = yield* transportTo(smtp.url)
  const deliver = (outgoing: OutgoingMail) => transport.deliver(outgoing, Effect.never)
  return { smtp, transport, deliver }
})

describe("MailTransport over SMTP", () => {
  it.live("a mail in any script reaches its recipient alone, unchanged", () =>
    Effect.gen(function* () {
      const { deliver, smtp } = yield* fixture
      const sent = mail({
        recipient: "Bob.O'Hara+x@example.com",
        subject: "Übertragung von “domain.example” an 株式会社 🐦 und noch viel mehr, damit die Zeile gefaltet wird",
        text: "Grüße\n.\n..\nMAIL FROM:<eve@example.com>\n> a note = quoted\n" + "long ".repeat(400),
        html: "<p>Grüße &lt;b&gt; 🐦</p>",
      })
      assert.deepStrictEqual(yield* deliver(sent), { _tag: "Sent" })
      const { from: envelopeFrom, mail: read, raw, to } = yield* Queue.take(smtp.taken)
      assert.deepStrictEqual([envelopeFrom, to], ["no-reply@mail.example", ["Bob.O'Hara+x@example.com"]])
      assert.strictEqual(read.subject, sent.subject)
      assert.strictEqual(read.text.trimEnd(), sent.text.trimEnd())
      assert.strictEqual(read.html.trimEnd(), sent.html)
      assert.strictEqual(read.messageId, sent.messageId)
      assert.strictEqual(new Date(read.date).getTime(), sent.date.getTime())
      assert.include(read.from, "<no-reply@mail.example>")
      assert.match(raw, /^Auto-Submitted: auto-generated\r$/m)
      assert.isTrue([...raw].every((character) => character.charCodeAt(0) < 0x80))
    }).pipe(Effect.scoped))

  it.live("characters that reorder, hide or break text are left out", () =>
    Effect.gen(function* () {
      const { deliver, smtp } = yield* fixture
      const name = "\u202eevil\u2066\u200b\u00ad\ufeff\u2028line\u2029end"
      const { text } = html`<p>${name}</p>`
      assert.deepStrictEqual(yield* deliver(mail({ subject: name, text: `> ${name}\n`, html: text })), { _tag: "Sent" })
      const { mail: read } = yield* Queue.take(smtp.taken)
      assert.strictEqual(read.subject, "evil line end")
      assert.strictEqual(read.text.trimEnd(), "> evil line end")
      assert.strictEqual(read.html.trimEnd(), "<p>evil line end</p>")
    }).pipe(Effect.scoped))

  it.live("no value can add a header, a recipient or a command", () =>
    Effect.gen(function* () {
      const { deliver, smtp } = yield* fixture
      const subject = "Hi\r\nBcc: eve@example.com\r\n\r\n<script>\n\u0000\u2028X-Evil: 1"
      assert.deepStrictEqual(yield* deliver(mail({ subject })), { _tag: "Sent" })
      const { mail: read, raw, to } = yield* Queue.take(smtp.taken)
      assert.deepStrictEqual(to, ["bob@example.com"])
      assert.strictEqual(read.subject, "Hi Bcc: eve@example.com <script> X-Evil: 1")
      const head = raw.slice(0, raw.indexOf("\r\n\r\n"))
      assert.notMatch(head, /^(bcc|x-evil)/im)
      assert.strictEqual(head.match(/^subject:/gim)?.length, 1)
      for (
        const recipient of [
          "bob@example.com\r\nRCPT TO:<eve@example.com>",
          "bob@example.com>,<eve@example.com",
          "bob@example.com, eve@example.com",
          "Bob <bob@example.com>",
          '"bob\\"@x"@example.com',
          "bob@[127.0.0.1]",
          "böb@example.com",
          "",
        ]
      ) assert.deepStrictEqual(yield* deliver(mail({ recipient })), { _tag: "Refused", error: "no address" }, recipient)
      assert.strictEqual(yield* Queue.size(smtp.taken), 0)
    }).pipe(Effect.scoped))

  const cases: ReadonlyArray<readonly [string, Behaviour, string, RegExp]> = [
    ["a greeting that refuses everyone", { at: "connect", answer: 554 }, "Later", /554/],
    ["a sender refused", { at: "mail", answer: 550 }, "Refused", /^EENVELOPE MAIL FROM 550 5\.7\.1$/],
    ["a recipient refused", { at: "rcpt", answer: 550 }, "Refused", /^EENVELOPE RCPT TO 550 5\.7\.1$/],
    ["a recipient refused for now", { at: "rcpt", answer: 450 }, "Later", /^EENVELOPE RCPT TO 450 4\.3\.0$/],
    ["a message refused", { at: "data", answer: 554 }, "Refused", /^EMESSAGE DATA 554 5\.7\.1$/],
    ["a message refused for now", { at: "data", answer: 451 }, "Later", /^EMESSAGE DATA 451 4\.3\.0$/],
    ["a connection cut before the message", { at: "rcpt", does: "cut" }, "Later", /./],
    ["a connection cut after the message", { at: "data", does: "cut" }, "Unknown", /./],
  ]
  for (const [name, behaviour, tag, reason] of cases) {
    it.live(`${name} gives ${tag.toLowerCase()}, and the next message goes out`, () =>
      Effect.gen(function* () {
        const { deliver, smtp } = yield* fixture
        smtp.behave(behaviour)
        const outcome = yield* deliver(mail())
        assert.strictEqual(outcome._tag, tag)
        assert.match("error" in outcome ? outcome.error : "", reason)
        // A server's answer may quote the message, and a link in it.
        assert.notInclude(JSON.stringify(outcome), "server.example")
        assert.deepStrictEqual(yield* deliver(mail()), { _tag: "Sent" })
        const received = yield* Queue.takeAll(smtp.taken)
        assert.strictEqual(received.filter(({ accepted }) => accepted).length, 1)
        assert.strictEqual(received.length, behaviour.at === "data" ? 2 : 1)
      }).pipe(Effect.scoped))
  }

  it.live("an interrupted delivery tells whether the message may have been accepted", () =>
    Effect.gen(function* () {
      const { smtp, transport } = yield* fixture
      smtp.behave({ at: "data", does: "silence" })
      const told = Effect.asVoid(Queue.take(smtp.taken))
      assert.strictEqual((yield* transport.deliver(mail(), told))._tag, "Unknown")
      smtp.behave({ at: "rcpt", does: "silence" })
      const met = Effect.sync(smtp.coming).pipe(
        Effect.repeat({ until: (left) => left === 0, schedule: Schedule.spaced("5 millis") }),
        Effect.asVoid,
      )
      assert.strictEqual((yield* transport.deliver(mail(), met))._tag, "Later")
      assert.strictEqual((yield* transport.deliver(mail(), Effect.never))._tag, "Sent")
    }).pipe(Effect.scoped))

  it.live("a connection is used again, replaced where it ended meanwhile, and closed at the end", () =>
    Effect.gen(function* () {
      const smtp = yield* testSmtp()
      const scope = yield* Scope.make()
      const transport = yield* Scope.provide(transportTo(smtp.url), scope)
      const deliver = (outgoing: OutgoingMail) => transport.deliver(outgoing, Effect.never)
      assert.strictEqual((yield* deliver(mail()))._tag, "Sent")
      assert.strictEqual((yield* deliver(mail()))._tag, "Sent")
      assert.strictEqual(smtp.connections(), 1)
      smtp.cut()
      assert.strictEqual((yield* deliver(mail()))._tag, "Sent")
      assert.strictEqual((yield* Queue.takeAll(smtp.taken)).length, 3)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.sync(() => smtp.connections()).pipe(
        Effect.repeat({ until: (open) => open === 0, schedule: Schedule.spaced("10 millis") }),
      )
    }).pipe(Effect.scoped))

  it.live("credentials are sent, an untrusted certificate and a closed port leave the mail for later", () =>
    Effect.gen(function* () {
      const smtp = yield* testSmtp({ authOptional: false, allowInsecureAuth: true })
      const signedIn = yield* transportTo(smtp.url.replace("//", "//us%40er:p%2Fw@"))
      assert.strictEqual((yield* signedIn.deliver(mail(), Effect.never))._tag, "Sent")
      smtp.behave({ at: "auth", answer: 535 })
      const other = yield* transportTo(smtp.url.replace("//", "//us%40er:p%2Fw@"))
      const refused = yield* other.deliver(mail(), Effect.never)
      assert.strictEqual(refused._tag, "Later")
      assert.match("error" in refused ? refused.error : "", /^EAUTH .*535/)

      const tls = yield* testSmtp({ secure: true, disabledCommands: [], logger: false })
      const untrusting = yield* transportTo(tls.url.replace("smtp:", "smtps:"))
      assert.strictEqual((yield* untrusting.deliver(mail(), Effect.never))._tag, "Later")
      assert.strictEqual(yield* Queue.size(tls.taken), 0)

      const nobody = yield* Effect.scoped(Effect.map(testSmtp(), ({ url }) => url))
      assert.strictEqual((yield* (yield* transportTo(nobody)).deliver(mail(), Effect.never))._tag, "Later")
    }).pipe(Effect.scoped))
})

describe("parseSender", () => {
  it("a sender is an address, with or without a name", () => {
    assert.deepStrictEqual(parseSender("a@b.example"), { name: "", address: "a@b.example" })
    assert.deepStrictEqual(parseSender("Bäiliwick Mail <a@b.example>"), {
      name: "Bäiliwick Mail",
      address: "a@b.example",
    })
    assert.deepStrictEqual(parseSender('"B, M" <a@b.example>'), { name: "B, M", address: "a@b.example" })
    for (const text of ["", "Bailiwick", "<>", "a@b.example, c@d.example", "A\r\nB <a@b.example>", "A <a@b> <c@d>"]) {
      assert.isNull(parseSender(text), text)
    }
  })
})
