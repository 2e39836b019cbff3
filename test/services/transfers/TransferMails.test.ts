import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { transferMailKinds, transferTemplates } from "../../../services/transfers/TransferMails.ts"
import { day } from "../../support/Fixtures.ts"
import { accept, command, domain, feed, fixture, force, offer, person, timed, tokenOf } from "./TransferFixture.ts"
import { Transfers } from "../../../services/transfers/Transfers.ts"

/** The mails of a transfer, rendered as the mailer would send them now. */
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

/** The texts of an account's in-app notices about a transfer, oldest first. */
const noticed = Effect.fnUntraced(function* (transferId: string, accountId: AccountId) {
  const { sql } = yield* Database
  const rows = yield* sql<{ body: string }>`
    select body from notifications
    where href = ${`/domain-transfers/${transferId}`} and account_id = ${accountId}::uuid order by created_at, id`
  return rows.map(({ body }) => body)
})

const domainOf = (text: string) => /d-[0-9a-f]+\.example/.exec(text)![0]

layer(fixture(), { excludeTestServices: true })("mails about transfers", (it) => {
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
      assert.include(html, `<a href="${link}" style="`)
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

  it.effect("every mailed kind has a template; mails about an end name the transfer", () =>
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

  it.effect("mails and notices of a completed transfer mention SMTP credentials only if some were revoked", () =>
    Effect.gen(function* () {
      const transfers = yield* Transfers
      const [alice, bob] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" })]
      const completed = Effect.fnUntraced(function* (credentials: ReadonlyArray<string>) {
        const domainId = yield* domain(alice)
        for (const account_id of credentials) {
          const fields = { domain_id: domainId, account_id, username: "u", revoked_at: null }
          yield* feed({ kind: "smtp_credential", id: randomUUID(), ...fields })
        }
        const { id } = yield* offer(alice.id, domainId, bob.email)
        yield* accept(bob.id, id)
        yield* TestClock.adjust(day)
        yield* transfers.settle(id)
        const sent = (yield* letters(id)).filter(({ kind }) => kind === "transfer.completed")
        const of = (email: string) => sent.find(({ recipient }) => recipient === email)!.letter!.text
        return { id, owner: of(alice.email), recipient: of(bob.email) }
      })
      const without = yield* completed([])
      assert.notMatch(without.owner + without.recipient, /revoked/)
      assert.include(without.recipient, "You need SMTP credentials of your own")
      const own = yield* completed([bob.id])
      assert.notMatch(own.owner + own.recipient, /revoked/)
      const revoked = yield* completed([alice.id])
      assert.include(revoked.owner, "SMTP credentials of your account for it were revoked.")
      assert.include(revoked.recipient, "SMTP credentials that other accounts had for it were revoked.")
      assert.deepStrictEqual(
        [yield* noticed(without.id, alice.id), yield* noticed(revoked.id, alice.id)].map((said) => said.at(-1)),
        [
          `${domainOf(without.owner)} now belongs to the other account.`,
          `${domainOf(revoked.owner)} now belongs to the other account. Your SMTP credentials for it were revoked.`,
        ],
      )
    }).pipe(timed))

  it.effect("a forced transfer mails its parties once; a former recipient reads that the offer has ended", () =>
    Effect.gen(function* () {
      const [alice, bob, carol] = [yield* person(), yield* person({ plan: "pro" }), yield* person()]
      const admin = yield* person({ platform_admin: true })
      for (const accepts of [false, true]) {
        for (const target of [bob, carol]) {
          const domainId = yield* domain(alice)
          const { id } = yield* offer(alice.id, domainId, bob.email)
          if (accepts) yield* accept(bob.id, id)
          const before = (yield* letters(id)).length
          const toldBefore = yield* noticed(id, bob.id)
          const forced = yield* force(admin.id, domainId, target.email)
          const ended = (yield* letters(id)).slice(before)
          const done = yield* letters(forced.id)
          const both = (email: string) => [...ended, ...done].filter(({ recipient }) => recipient === email)
          for (const side of [alice, target]) {
            const [only, more] = both(side.email)
            assert.isUndefined(more)
            assert.include(only!.letter!.text, "An administrator of the platform moved")
            assert.strictEqual(only!.letter!.text.includes("under way has ended"), side === alice || target === bob)
          }
          const [told] = both(bob.email)
          const text = told!.letter!.subject + told!.letter!.text
          assert.notMatch(text, /stopped|stays|cancelled/)
          if (target === bob) assert.deepStrictEqual(yield* noticed(id, bob.id), toldBefore)
          else assert.match(text, /has ended|was withdrawn/)
          assert.deepStrictEqual((yield* noticed(id, alice.id)).filter((body) => /stopped\.|cancelled/.test(body)), [])
        }
      }
    }).pipe(timed))
})
