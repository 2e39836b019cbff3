/** `?dry_run=true` of the approvals: the answer of the approval itself, for every caller, and nothing is changed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { management } from "../../../support/TestManagement.ts"
import { catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { type Answer, as, send } from "./IdentityClient.ts"
import { everybody, stage } from "./IdentityStage.ts"

const approvals = catalogue.filter(({ operation }) =>
  [
    "access-grant-reviews.approveAccessGrantReview",
    "lifecycle-service-grants.approveLifecycleServiceGrant",
    "policies.approvePolicyReview",
  ].includes(operation)
)

/** The content of the tables that a decision changes, but for those that workers change beside it. */
const contents = Effect.gen(function* () {
  const { owner } = yield* Database
  const tables = yield* owner<{ name: string }>`
    select c.oid::regclass::text as name from pg_class c
    where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1`
  const decided = tables.filter(({ name }) =>
    /review|grant|request(?!_rates)|access|project|receipt|person|people/.test(name)
  )
  assert.isAtLeast(decided.length, 13)
  const digests = decided.map(({ name }) =>
    `select '${name}' as name, count(*)::int as rows, coalesce(sum(hashtextextended(t::text, 0)), 0)::text as digest
      from ${name} t`
  )
  return (yield* owner.unsafe<object>(digests.join(" union all "))).map((row) => ({ ...row }))
})

const outcome = ({ body, status }: Answer) =>
  status < 300 ? "accepted" : { status, code: body.code, detail: body.detail, title: body.title }

layer(management({ MANAGEMENT_APPROVAL_MAX_AGE: "15 minutes" }), { excludeTestServices: true, timeout: "2 minutes" })(
  "A dry run of an approval",
  (it) => {
    it.effect("answers every caller as the approval does, changes nothing, and leaves the key unused", () =>
      Effect.gen(function* () {
        assert.lengthOf(approvals, 3)
        const fixture = yield* stage
        for (const one of approvals) {
          const operation = operationOf(one)
          const accepted: Array<string> = []
          const shared = yield* one.asked(fixture, fixture.people[one.by])
          // The administrators come last: their approval ends what the others are refused.
          const callers = [...everybody].sort((a, b) =>
            Number(a.startsWith("administrator")) - Number(b.startsWith("administrator"))
          )
          for (const who of callers) {
            const headers = { ...(yield* as(fixture.people[who])), "idempotency-key": randomUUID(), ...shared.headers }
            const path = pathOf(operation, shared)
            const before = yield* contents
            const dry = yield* send("POST", `${path}?dry_run=true`, headers, shared.body)
            assert.deepStrictEqual(yield* contents, before, `${one.operation} ${who}`)
            const real = yield* send("POST", path, headers, shared.body)
            assert.notProperty(real.headers, "idempotency-replayed")
            assert.deepStrictEqual(outcome(dry), outcome(real), `${one.operation} ${who}`)
            if (real.status >= 300) continue
            accepted.push(who)
            assert.notDeepEqual(yield* contents, before, one.operation)
            assert.deepStrictEqual([dry.status, dry.text], [204, ""], one.operation)
            // A dry run with a key that was used tells of the present state, not of the receipt.
            const after = yield* send("POST", `${path}?dry_run=true`, headers, shared.body)
            assert.strictEqual(after.status, 409, `${one.operation} ${after.text}`)
          }
          assert.isNotEmpty(accepted, one.operation)
        }
      }))

    it.effect("tells of an old sign-in, of stale evidence and of a key that is missing", () =>
      Effect.gen(function* () {
        const fixture = yield* stage
        for (const one of approvals) {
          const operation = operationOf(one)
          const asked = yield* one.asked(fixture, fixture.people[one.by])
          const dry = (headers: Record<string, string>, value = "true") =>
            send("POST", `${pathOf(operation, asked)}?dry_run=${value}`, { ...asked.headers, ...headers }, asked.body)
          const key = { "idempotency-key": randomUUID() }
          const authTime = Math.floor(Date.now() / 1_000) - 3_600 * 24
          const old = yield* as(fixture.people[one.by], { authTime })
          const who = yield* as(fixture.people[one.by])
          assert.strictEqual((yield* dry({ ...who, ...key })).status, 204, one.operation)
          assert.strictEqual((yield* dry(who)).status, 422)
          assert.strictEqual((yield* dry({ ...who, ...key }, "perhaps")).status, 422)
          assert.strictEqual((yield* dry(key)).status, 401)
          const stale = yield* dry({ ...old, ...key })
          assert.deepStrictEqual([stale.status, stale.body.code], [401, "insufficient_user_authentication"])
          if (one.operation.startsWith("access-grant-reviews")) {
            const unseen = yield* dry({ ...who, ...key, "if-match": '"sha256:0"' })
            assert.deepStrictEqual([unseen.status, unseen.body.code], [412, "precondition_failed"])
          }
          // `false` is the approval itself.
          assert.strictEqual((yield* dry({ ...who, ...key }, "false")).status, 200, one.operation)
        }
      }))
  },
)
