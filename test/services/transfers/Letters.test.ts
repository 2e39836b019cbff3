import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../../services/platform/Database.ts"
import { transferMailKinds, transferTemplates } from "../../../services/transfers/Letters.ts"
import { accept, command, day, domain, offer, person, timed, tokenOf, world } from "./TransferWorld.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"

/** What the Mailer would send now, of every mail about a transfer, by kind and recipient. */
const letters = Effect.fnUntraced(function* (transferId: string) {
  const { sql } = yield* Database
  const templates = yield* transferTemplates(new URL("https://mail.example/base/"))
  const mails = yield* sql<{ id: string; kind: string; recipient: string; args: Record<string, string> }>`
    select id::text as id, kind, recipient, args from mails where subject_id = ${transferId} order by id`
  return yield* Effect.forEach(mails, ({ args, id, kind, recipient }) =>
    Effect.map(
      templates.find((template) => template.kind === kind)!.render({ args, id, recipient, subjectId: transferId }),
      (letter) => ({ kind, recipient, letter }),
    ))
})

layer(world(), { excludeTestServices: true })("letters", (it) => {
  it.effect("the invitation and the stop mail carry their token; names and notes are text, quoted and escaped", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* person({ name: `Eve <b>"&` }), yield* person()]
      const note = `one <script>alert(1)</script>\r\ntwo https://evil.example`
      const { id } = yield* offer(alice.id, yield* domain(alice), bob.email, note)
      const [invitation] = yield* letters(id)
      const link = `https://mail.example/transfers/accept/${yield* tokenOf("accept", id)}`
      assert.deepStrictEqual([invitation!.kind, invitation!.recipient], ["transfer.invitation", bob.email])
      const { html, subject, text } = invitation!.letter!
      assert.include(text, link)
      assert.include(html, `<a href="${link}">`)
      assert.include(text, "> one <script>alert(1)</script>\n> two https://evil.example")
      assert.notInclude(html, "<script>")
      assert.notInclude(html, "<b>")
      assert.notMatch(subject, /[\r\n]/)

      yield* accept(bob.id, id)
      const [answered, stop] = yield* letters(id)
      assert.isNull(answered!.letter)
      assert.deepStrictEqual([stop!.kind, stop!.recipient], ["transfer.stop", alice.email])
      assert.include(stop!.letter!.text, `https://mail.example/transfers/stop/${yield* tokenOf("stop", id)}`)
      assert.include(stop!.letter!.text, "2026-03-11 12:00 UTC")
      yield* TestClock.adjust(day)
      yield* (yield* Transfers).settle(id)
      const [, late, ...ended] = yield* letters(id)
      assert.isNull(late!.letter)
      assert.deepStrictEqual(ended.map(({ kind }) => kind), ["transfer.completed", "transfer.completed"])
      for (const { letter } of ended) assert.notMatch(letter!.text + letter!.html, /https:/)
    }).pipe(timed))

  it.effect("every kind that is mailed has a template that says something", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const { sql } = yield* Database
      const [alice, bob] = [yield* person({ plan: "pro" }), yield* person()]
      const offered = Effect.flatMap(domain(alice), (id) => offer(alice.id, id, bob.email))
      const declined = yield* offered
      yield* transfers.decline({ ...command(), accountId: bob.id, transferId: declined.id })
      const cancelled = yield* offered
      yield* transfers.cancel({ ...command(), accountId: alice.id, transferId: cancelled.id })
      const stopped = yield* offered
      yield* accept(bob.id, stopped.id)
      yield* transfers.stop({ ...command(), transferId: stopped.id })
      const expired = yield* offered
      yield* TestClock.adjust(7 * day)
      yield* transfers.settle(expired.id)
      const kinds = yield* sql<{ kind: string }>`select distinct kind from mails where kind like 'transfer.%'`
      for (const { kind } of kinds) assert.include(transferMailKinds, kind)
      for (const { id } of [declined, cancelled, stopped, expired]) {
        const [, ...rest] = yield* letters(id)
        for (const { kind, letter } of rest.filter(({ kind }) => kind !== "transfer.stop")) {
          assert.match(letter!.subject, /^The transfer of d-/, kind)
          assert.include(letter!.html, "<p>", kind)
        }
      }
    }).pipe(timed))
})
