import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { OutgoingMailPage } from "../../../schemas/identity/MailView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { MailUpkeep } from "../../../services/platform/mail/MailUpkeep.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { outgoingMail } from "../../support/TestMails.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/mails"
const pageOf = Schema.decodeUnknownSync(OutgoingMailPage)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Mails over HTTP", (it) => {
  it.effect("are listed newest first by their state, with masked recipients", () =>
    Effect.gen(function* () {
      const oz = yield* bearer(yield* person({ operator: true }))
      const failed: Array<string> = []
      for (const recipient of ["alice@fern.example", "no address", "bob@fern.example"]) {
        failed.unshift(yield* outgoingMail({ recipient }))
      }
      const unknown = yield* outgoingMail({ state: "unknown" })
      yield* outgoingMail({ state: "sent" })
      const listed = Effect.fnUntraced(function* (query: string) {
        const answer = yield* send("GET", `${path}?${query}`, oz)
        assert.strictEqual(answer.status, 200, answer.text)
        assert.notInclude(answer.text, "alice@")
        return pageOf(answer.body)
      })
      const first = yield* listed("limit=2")
      const second = yield* listed(`limit=2&after_id=${first.next_after_id}`)
      assert.deepStrictEqual([...first.items, ...second.items].map(({ id }) => id), failed)
      assert.deepStrictEqual(
        [...first.items, ...second.items].map(({ recipient }) => recipient),
        ["b***@fern.example", "n***", "a***@fern.example"],
      )
      assert.isNull(second.next_after_id)
      assert.deepInclude(first.items[0], {
        kind: "test.kind",
        state: "failed",
        attempts: 3,
        sending: false,
        next_attempt_at: null,
        last_error: "550 5.1.1 no such user",
      })
      assert.deepStrictEqual((yield* listed("state=unknown")).items.map(({ id }) => id), [unknown])
      assert.deepStrictEqual((yield* listed("state=sent")).items, [])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
    }))

  it.effect("are tried again or given up once for each key, with a reason, and never while one is being sent", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const [failed, unknown] = [yield* outgoingMail(), yield* outgoingMail({ state: "unknown" })]
      const decide = (id: string, what: string, headers: Readonly<Record<string, string>> = oz) =>
        send("POST", `${path}/${id}/${what}`, headers, { reason })
      const headers = { ...oz, ...key() }
      const again = yield* decide(failed, "retry", headers)
      assert.deepInclude(again.body, { id: failed, state: "pending", attempts: 0, sending: false })
      assert.approximately(Date.parse(again.body.next_attempt_at), Date.now(), 60_000)
      assert.strictEqual((yield* decide(failed, "retry", headers)).text, again.text)
      assert.deepInclude((yield* decide(unknown, "retry")).body, { state: "unknown", attempts: 0 })
      const gone = yield* decide(failed, "forget")
      assert.deepInclude(gone.body, { id: failed, state: "dropped", next_attempt_at: null })
      assert.deepStrictEqual(codeOf(yield* decide(failed, "forget")), [409, "invalid_state"])
      assert.deepStrictEqual(codeOf(yield* decide(failed, "retry")), [409, "invalid_state"])
      const sending = yield* decide(yield* outgoingMail({ state: "pending", claimed: true }), "forget")
      assert.deepStrictEqual([...codeOf(sending), sending.body.state], [409, "invalid_state", "sending"])
      for (const id of [randomUUID(), "nothing"]) {
        assert.deepStrictEqual(codeOf(yield* decide(id, "retry")), [404, "not_found"])
      }
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* decide(unknown, "forget", somebody)), [403, "role_required"])
      const records = yield* sql`
        select actor, action, subject, details from audit_records where action in ('mail.retried', 'mail.forgotten')
        order by id`
      const by = (state: string) => ({ actor: `person:${operator}`, details: { reason, kind: "test.kind", state } })
      assert.deepStrictEqual(records, [
        { ...by("failed"), action: "mail.retried", subject: `mail:${failed}` },
        { ...by("unknown"), action: "mail.retried", subject: `mail:${unknown}` },
        { ...by("pending"), action: "mail.forgotten", subject: `mail:${failed}` },
      ])
    }))

  it.effect("a page reads few rows among 50,000 mails", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      // So many have failed that the planner would not sort them for a page of ten.
      yield* owner`
        insert into mails (id, kind, subject_id, recipient, args, state, created_at, ended_at)
        select gen_random_uuid(), 'test.kind', 'subject', 'alice@fern.example', '{}',
          case n % 10 when 0 then 'failed' when 1 then 'unknown' else 'sent' end, now(), now() from generate_series(1, 50000) n`
      yield* owner`vacuum analyze mails`
      const { list } = yield* MailUpkeep
      const { nextAfterId } = yield* list("failed", 10, undefined)
      for (const afterId of [undefined, nextAfterId!]) {
        const [rows] = yield* rowsRead(sql, list("failed", 10, afterId))
        assert.isAtMost(rows.get("mails") ?? 0, 30, afterId ?? "the first page")
      }
    }).pipe(Effect.provide(MailUpkeep.layer)))
})
