import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { IntakeRejectPage } from "../../../schemas/identity/IntakeRejectView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { RejectUpkeep } from "../../../services/platform/messaging/RejectUpkeep.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { intakeReject } from "../../support/TestRejects.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/intake-rejects"
const pageOf = Schema.decodeUnknownSync(IntakeRejectPage)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Rejected messages over HTTP", (it) => {
  it.effect("are listed newest first by their state, with a bounded text", () =>
    Effect.gen(function* () {
      const oz = yield* bearer(yield* person({ operator: true }))
      const at = (minutes: number) => new Date(Date.now() - minutes * 60_000)
      const rejects: Array<string> = []
      // Two of them came in the same moment.
      const same = at(2)
      for (const receivedAt of [at(3), same, same, at(1)]) rejects.unshift(yield* intakeReject({ receivedAt }))
      const waiting = yield* intakeReject({ state: "waiting", accountId: randomUUID(), payload: "é".repeat(2_000) })
      yield* intakeReject({ state: "resolved" })
      const listed = Effect.fnUntraced(function* (query: string) {
        const answer = yield* send("GET", `${path}?${query}`, oz)
        assert.strictEqual(answer.status, 200, answer.text)
        return pageOf(answer.body)
      })
      const first = yield* listed("limit=2")
      const second = yield* listed(`limit=2&after_id=${first.next_after_id}`)
      assert.sameMembers([...first.items, ...second.items].map(({ id }) => id), rejects)
      assert.strictEqual(first.items[0]!.id, rejects[0])
      assert.isNull(second.next_after_id)
      assert.deepInclude(first.items[0], {
        state: "rejected",
        stream: "EVENTS",
        stream_seq: 7,
        subject: "events.v1.email.sent",
        reason: "malformed",
        raw: `{"type":"email.sent"}`,
        bytes: 21,
        account_id: null,
        waits_until: null,
        retryable: false,
      })
      const [one, ...others] = (yield* listed("state=waiting")).items
      assert.deepStrictEqual([one!.id, one!.bytes, one!.raw, others], [waiting, 4_000, "é".repeat(1_024), []])
      assert.deepStrictEqual((yield* listed("state=resolved")).items, [])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
    }))

  it.effect("wait for their account once more, or are discarded, once for each key and with a reason", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const [late, malformed] = [yield* intakeReject({ accountId: randomUUID() }), yield* intakeReject()]
      const decide = (id: string, what: string, headers: Readonly<Record<string, string>> = oz) =>
        send("POST", `${path}/${id}/${what}`, headers, { reason })

      const refused = yield* decide(malformed, "retry")
      assert.deepStrictEqual(codeOf(refused), [409, "invalid_state"])
      assert.include(refused.body.detail, "publish it again")
      const headers = { ...oz, ...key() }
      const again = yield* decide(late, "retry", headers)
      assert.deepInclude(again.body, { id: late, state: "waiting", retryable: false })
      assert.approximately(Date.parse(again.body.waits_until), Date.now() + 7 * 86_400_000, 60_000)
      assert.strictEqual((yield* decide(late, "retry", headers)).text, again.text)
      assert.deepStrictEqual(codeOf(yield* decide(late, "retry")), [409, "invalid_state"])

      for (const id of [late, malformed]) {
        const gone = yield* decide(id, "discard")
        assert.deepInclude(gone.body, { id, state: "resolved", waits_until: null })
        assert.deepStrictEqual(codeOf(yield* decide(id, "discard")), [409, "invalid_state"])
      }
      for (const id of [randomUUID(), "nothing"]) {
        assert.deepStrictEqual(codeOf(yield* decide(id, "discard")), [404, "not_found"])
      }
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* decide(late, "discard", somebody)), [403, "role_required"])
      const records = yield* sql`
        select actor, action, subject, details from audit_records
        where action like 'intake-reject.%' order by id`
      const by = { actor: `person:${operator}`, details: { reason, stream: "EVENTS", stream_seq: 7 } }
      assert.deepStrictEqual(records, [
        { ...by, action: "intake-reject.retried", subject: `intake-reject:${late}` },
        { ...by, action: "intake-reject.discarded", subject: `intake-reject:${late}` },
        { ...by, action: "intake-reject.discarded", subject: `intake-reject:${malformed}` },
      ])
    }))

  it.effect("a page reads few rows among 50,000 messages", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* owner`
        insert into intake_rejects (id, stream, stream_seq, subject, reason, payload, state, received_at)
        select gen_random_uuid(), 'EVENTS', n, 'events.v1.email.sent', 'malformed', '', 
          (array['rejected', 'resolved'])[1 + n % 2], now() - n * interval '1 second'
        from generate_series(1, 50000) n`
      yield* owner`vacuum analyze intake_rejects`
      const { list } = yield* RejectUpkeep
      const { nextAfterId } = yield* list("rejected", 10, undefined)
      for (const afterId of [undefined, nextAfterId!]) {
        const [rows] = yield* rowsRead(sql, list("rejected", 10, afterId))
        assert.isAtMost(rows.get("intake_rejects") ?? 0, 30, afterId ?? "the first page")
      }
    }).pipe(Effect.provide(RejectUpkeep.layer)))
})
