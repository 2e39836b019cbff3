import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import fc from "fast-check"
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { MailTransport } from "../../../services/platform/mail/MailTransport.ts"
import { DevMailbox, message, newest } from "../../../src/embedded/DevMailbox.ts"
import { readEml } from "../../../src/embedded/Eml.ts"
import { runs } from "../../support/Runs.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-mailbox-"))),
  (home) => Effect.sync(() => rmSync(home, { recursive: true })),
)

const id = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, "0")}`
const outgoing = (n: number, fields: { subject?: string; text?: string; html?: string } = {}) => ({
  id: id(n),
  messageId: `<${id(n)}@localhost>`,
  recipient: "bob@example.com",
  subject: "Hello",
  text: "Hello",
  html: "<p>Hello</p>",
  date: new Date("2026-01-02T03:04:05Z"),
  ...fields,
})

const opened = Effect.gen(function* () {
  const home = yield* folder
  const from = { name: "Bailiwick", address: "no-reply@localhost" }
  const transport = Context.get(yield* Layer.build(DevMailbox.layer({ home, from })), MailTransport)
  return { home, deliver: (n: number, fields?: object) => transport.deliver(outgoing(n, fields), Effect.never) }
})

describe("the dev mailbox", () => {
  it.live("keeps each message once, newest first, for this user alone", () =>
    Effect.gen(function* () {
      const { deliver, home } = yield* opened
      assert.deepStrictEqual(newest(home, 10), [])
      for (const n of [1, 2, 2, 3]) assert.deepStrictEqual(yield* deliver(n), { _tag: "Sent" })
      assert.deepStrictEqual(newest(home, 2).map((mail) => mail.id), [id(3), id(2)])
      const mailbox = join(home, "mailbox")
      assert.strictEqual(statSync(mailbox).mode & 0o777, 0o700)
      assert.strictEqual(readdirSync(mailbox).length, 3)
      for (const file of readdirSync(mailbox)) assert.strictEqual(statSync(join(mailbox, file)).mode & 0o777, 0o600)
      assert.strictEqual(message(home, id(2))?.messageId, `<${id(2)}@localhost>`)
      writeFileSync(join(home, "secret.eml"), "")
      for (const wrong of ["", "../secret", `../mailbox/${id(2)}`, id(9)]) assert.isNull(message(home, wrong), wrong)
    }).pipe(Effect.scoped))

  it.live("delivers later where its folder cannot be written", () =>
    Effect.gen(function* () {
      const { deliver, home } = yield* opened
      writeFileSync(join(home, "mailbox"), "a file")
      assert.strictEqual((yield* deliver(1))._tag, "Later")
    }).pipe(Effect.scoped))

  it.live("reads back what it wrote, with any text", () =>
    Effect.gen(function* () {
      const { deliver, home } = yield* opened
      const line = fc.string({ unit: "grapheme", maxLength: 150 }).filter((text) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text))
      const body = fc.array(line, { minLength: 1, maxLength: 6 }).map((lines) => lines.join("\n"))
      const property = fc.asyncProperty(line, body, body, async (subject, text, html) => {
        await Effect.runPromise(deliver(1, { subject, text, html }))
        const read = message(home, id(1))!
        assert.strictEqual(read.subject.replaceAll(/\s+/g, " ").trim(), subject.replaceAll(/\s+/g, " ").trim())
        assert.strictEqual(read.text.trimEnd(), text.trimEnd())
        assert.strictEqual(read.html.trimEnd(), html.trimEnd())
        assert.strictEqual(read.to, "bob@example.com")
      })
      yield* Effect.promise(() => fc.assert(property, { numRuns: runs(200) }))
    }).pipe(Effect.scoped))

  it("ignores a file that is no message", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void readEml(bytes)))
    assert.strictEqual(readEml(new TextEncoder().encode("Subject: x")).subject, "x")
  })
})
