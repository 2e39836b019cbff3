/** The audit grows with kinds of refusals and with time, not with refused requests. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { AuditLog } from "../../../../services/platform/observability/AuditLog.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import type { Refusal } from "../../../../src/http/edge/GatheredRejections.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"

const refused = (over: Partial<Refusal> & Pick<Refusal, "requestId" | "actor">): Refusal => ({
  route: "/v1/webhooks/{webhook_id}",
  status: 404,
  code: "not_found",
  credential: "mail_k_free0001",
  ...over,
})

interface Row {
  readonly id: string
  readonly actor: string | null
  readonly status: number
  readonly route: string | null
  readonly code: string | null
  readonly details: { readonly count?: number; readonly request_ids?: ReadonlyArray<string> }
}

/** Runs with a gatherer of its own, which writes at its end; returns the rows with an actor like this. */
const rowsOf = Effect.fnUntraced(function* <E>(like: string, run: Effect.Effect<unknown, E, RejectionAudit>) {
  yield* Effect.provide(run, Layer.fresh(RejectionAudit.layer))
  const { sql } = yield* Database
  return yield* sql<Row>`
    select id::text as id, actor, status, route, code, details from audit_records
    where coalesce(actor, details->>'credential') like ${like} order by id`
})

const total = (rows: ReadonlyArray<Row>) => rows.reduce((sum, { details }) => sum + (details.count ?? 1), 0)

layer(AuditLog.layer.pipe(Layer.provideMerge(Audit.layer), Layer.provideMerge(TestDatabase.layer)))(
  "the audit of refusals",
  (it) => {
    it.effect("an account whose requests are refused for a minute leaves a few records, which count each one", () =>
      Effect.gen(function* () {
        const actor = "account:flood"
        const rows = yield* rowsOf(
          actor,
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            for (let second = 0; second < 60; second++) {
              for (let i = 0; i < 60; i++) {
                const route = `/v1/route-${i % 3}`
                yield* record(refused({ actor, route, requestId: `flood-${second}-${i}` }))
              }
              yield* TestClock.adjust("1 second")
            }
          }),
        )
        assert.strictEqual(total(rows), 3_600)
        // At once, after 1, 2, 4, 8, 16 and 30 seconds.
        assert.isAtMost(rows.length, 3 * 7)
        assert.deepStrictEqual(new Set(rows.map(({ route }) => route)).size, 3)
        // An id is about 40 bytes: one actor's growth of the audit is bounded as well.
        for (const { details } of rows) assert.isAtMost(details.request_ids?.length ?? 1, 500)
      }))

    it.effect("each request id leads to its record: the first at once, later ones after a second", () =>
      Effect.gen(function* () {
        const actor = "account:found"
        const log = yield* AuditLog
        const found = (requestId: string) => Stream.runCollect(log.read({ requestId }))
        const refusals = yield* rowsOf(
          actor,
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            const first = yield* record(refused({ actor, requestId: "found-1" }))
            assert.deepStrictEqual((yield* found("found-1")).map(({ id }) => id), [first!])
            const second = yield* record(refused({ actor, requestId: "found-2" }))
            const third = yield* record(refused({ actor, requestId: "found-3" }))
            assert.strictEqual(third, second)
            yield* TestClock.adjust("1 second")
            for (const requestId of ["found-2", "found-3"]) {
              const [row] = yield* found(requestId).pipe(
                Effect.filterOrFail((rows) => rows.length > 0),
                TestClock.withLive,
                Effect.retry(Schedule.forever),
              )
              assert.deepInclude(row, { id: second!, actor, code: "not_found", route: "/v1/webhooks/{webhook_id}" })
            }
          }),
        )
        assert.lengthOf(refusals, 2)
      }))

    it.effect("codes, routes and actors are recorded apart, and a fault of ours never among refusals", () =>
      Effect.gen(function* () {
        const rows = yield* rowsOf(
          "account:kind%",
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            const one = refused({ actor: "account:kind-a", requestId: "kind-1" })
            const kinds = [
              one,
              { ...one, code: "gone", status: 410 },
              { ...one, route: "/v1/other" },
              { ...one, actor: "account:kind-b" },
              { ...one, status: 500, code: "internal" },
              { ...one, status: 503, code: "dependency_unavailable" },
              { ...one, status: 429, code: "rate_limited" },
            ]
            for (const kind of [...kinds, ...kinds]) yield* record(kind)
          }),
        )
        assert.strictEqual(total(rows), 14)
        // The last two wait, counted from the first.
        assert.lengthOf(rows, 5 * 2 + 2)
      }))

    it.effect("an account with many kinds takes no other's room, and its name stays in the records", () =>
      Effect.gen(function* () {
        const rows = yield* rowsOf(
          "account:many%",
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            for (let i = 0; i < 500; i++) {
              yield* record(refused({ actor: "account:many", route: `/v1/route-${i}`, requestId: `many-${i}` }))
            }
            yield* record(refused({ actor: "account:many-other", requestId: "many-other" }))
          }),
        )
        assert.strictEqual(total(rows), 501)
        const [own, other] = [rows.filter((row) => row.actor === "account:many"), rows.slice(-1)]
        assert.lengthOf(own, 20 + 1)
        assert.deepInclude(own.at(-1), { status: 404, code: "not_found", route: null })
        assert.strictEqual(own.at(-1)!.details.count, 480)
        assert.deepInclude(other[0], { actor: "account:many-other", code: "not_found" })
      }))

    it.effect("what could not be written is written once it can be; further refusals have the next record", () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        const warned = yield* Deferred.make<void>()
        const failing = Logger.layer([Logger.map(Logger.formatJson, (line) => {
          if (line.includes("gathered refusals were not written yet")) Deferred.doneUnsafe(warned, Effect.void)
        })])
        const asked = (requestId: string) =>
          refused({ actor: null, status: 400, credential: "mail_k_away0001", requestId })
        const rows = yield* rowsOf(
          "mail_k_away%",
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            yield* owner`alter table audit_records rename to audit_records_away`
            const first = yield* record(asked("away-1"))
            yield* TestClock.adjust("1 second")
            yield* Deferred.await(warned)
            yield* owner`alter table audit_records_away rename to audit_records`
            assert.notStrictEqual(yield* record(asked("away-2")), first)
            yield* TestClock.adjust("10 seconds")
            yield* sql`select from audit_records where id = ${first}::uuid`.pipe(
              Effect.filterOrFail((found) => found.length > 0),
              TestClock.withLive,
              Effect.retry(Schedule.forever),
            )
          }),
        ).pipe(Effect.provide(failing))
        assert.deepStrictEqual(rows.map(({ details }) => details.request_ids), [["away-1"], ["away-2"]])
      }))

    it.effect("made-up key prefixes leave no record each", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* rowsOf(
          "mail_k_%",
          Effect.gen(function* () {
            const { record } = yield* RejectionAudit
            for (let second = 0; second < 10; second++) {
              for (let i = 0; i < 300; i++) {
                const credential = `mail_k_${String(second * 300 + i).padStart(8, "0")}`
                const requestId = `guess-${second}-${i}`
                yield* record(refused({ actor: null, status: 401, code: "invalid_credentials", credential, requestId }))
              }
              yield* TestClock.adjust("1 second")
            }
          }),
        )
        const rows = yield* sql<Row>`
          select actor, details from audit_records where status = 401 and actor is null`
        assert.strictEqual(total(rows), 3_000)
        assert.isAtMost(rows.length, 200 + 5)
      }))
  },
)
