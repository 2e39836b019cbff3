import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { encodeCursor } from "../../../schemas/identity/Cursor.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { ensureEpoch } from "../../../services/lifecycle/Epochs.ts"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { readInstallation } from "../../../services/platform/database/Installation.ts"
import { genesis } from "../../../services/platform/security/CanonicalJson.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { verifySnapshot } from "../../../sdk/Verify.ts"
import { tagOf } from "../../support/Fixtures.ts"
import { access, issuer, person } from "../../support/TestIdentity.ts"
import { everything, grant, pinsFor, type Scene, scene, signAll, transmitter } from "./LifecycleFixture.ts"

/** The installation's row as a promoted standby finds it: same data, another timeline, another run of the server. */
const failOver = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set timeline_id = '0000FFFF', server = 'another'`),
)

const open = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set state = 'open', held_since = null, held_reason = null`),
)

const epoch = Effect.flatMap(Database, ({ sql }) => Effect.map(readInstallation(sql), (row) => row.epoch))

const heads = (projectId: string) =>
  Effect.flatMap(Database, ({ sql }) =>
    sql<{ epoch: number; position: bigint; digest: string }>`
      select epoch, position, digest from lifecycle_heads where project_id = ${projectId}`)

const change = Effect.fnUntraced(function* ({ institution, project }: Scene) {
  const id = yield* person()
  yield* access(institution, project, id)
  return id
})

layer(transmitter, { excludeTestServices: true })("Epochs", (it) => {
  it.effect("a restart of the same server begins no new epoch", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* scene
      const before = yield* epoch
      yield* sql`update installation set server = 'an earlier run'`
      assert.isFalse(yield* ensureEpoch(sql))
      yield* change(made)
      assert.strictEqual(yield* epoch, before)
      assert.strictEqual((yield* readInstallation(sql)).state, "open")
    }))

  it.effect("a new timeline is noticed by the next event itself, which gets the first position of the new epoch", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [made, idle] = [yield* scene, yield* scene]
      yield* change(made)
      const [old] = yield* heads(made.project)
      const was = yield* epoch
      yield* failOver
      const late = yield* change(made)
      assert.strictEqual(yield* epoch, was + 1)
      const [first] = yield* sql<{ position: bigint; prev_digest: string; kind: string; person_id: string }>`
        select position, prev_digest, kind, person_id from lifecycle_events
        where project_id = ${made.project} and epoch = ${was + 1}`
      assert.deepStrictEqual(first, { position: 1n, prev_digest: genesis, kind: "access-granted", person_id: late })
      assert.deepStrictEqual(yield* heads(idle.project), [{ epoch: was + 1, position: 0n, digest: genesis }])
      assert.deepStrictEqual(
        yield* sql`select digest from lifecycle_events where project_id = ${made.project} and epoch = ${was}
          order by position desc limit 1`,
        [{ digest: old!.digest }],
      )
      assert.deepInclude(yield* readInstallation(sql), { state: "held", held_reason: "failed_over" })
      yield* open
    }))

  it.effect("writers that notice a new timeline at the same moment begin one epoch, without a gap", () =>
    Effect.gen(function* () {
      const made = yield* Effect.forEach(Array.from({ length: 4 }), () => scene)
      const people = yield* Effect.forEach(made, () => person())
      const was = yield* epoch
      yield* failOver
      const { append } = yield* EventLog
      const events = made.flatMap((at, i) =>
        Array.from({ length: 5 }, () => ({
          kind: "session-revoked" as const,
          projectId: at.project,
          institutionId: at.institution,
          person: { id: people[i]!, issuer, subject: people[i]! },
          initiatedBy: "system" as const,
        }))
      )
      yield* Effect.forEach(events, (event) => run(append(event)), { concurrency: 8 })
      assert.strictEqual(yield* epoch, was + 1)
      for (const { project } of made) {
        const [head] = yield* heads(project)
        assert.deepInclude(head, { epoch: was + 1, position: 5n })
      }
      yield* open
    }))

  it.effect("an old epoch's cursor is refused; a snapshot carries the kept state, and events go on from it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { acknowledge, events, snapshot } = yield* CursorApi
      const made = yield* scene
      const pat = yield* change(made)
      // This event is not signed yet: it is signed in the epoch in which it was appended.
      const before = yield* heads(made.project)
      yield* failOver
      assert.isTrue(yield* ensureEpoch(sql))
      yield* signAll
      const [signed] = yield* sql<{ n: number }>`
        select count(*)::int as n from lifecycle_messages where project_id = ${made.project}`
      assert.strictEqual(BigInt(signed!.n), before[0]!.position)

      const old = encodeCursor({ epoch: before[0]!.epoch, position: 0 })
      const ask = { ...made.asking, limit: 10, waitMillis: 0 }
      assert.strictEqual(yield* tagOf(events({ ...ask, after: old })), "CursorEpochChanged")
      assert.strictEqual(yield* tagOf(events({ ...ask, after: undefined })), "CursorExpired")
      assert.strictEqual(
        yield* tagOf(acknowledge({ ...made.asking, cursor: old, installed_version: "1", chain_head: genesis })),
        "CursorEpochChanged",
      )

      // The snapshot could contain Access that was revoked in the lost history.
      assert.strictEqual(yield* tagOf(snapshot(made.asking)), "Held")
      yield* open
      const token = yield* snapshot(made.asking)
      const pins = yield* pinsFor(made.project)
      const read = yield* Effect.promise(() => verifySnapshot(token, made.project, pins))
      assert.deepInclude(read, { epoch: before[0]!.epoch + 1, position: 0, chainHead: genesis })
      const state = read.state as {
        readonly access: ReadonlyArray<object>
        readonly sessions_floor: ReadonlyArray<object>
      }
      assert.lengthOf(state.access, 1)
      assert.deepStrictEqual(
        state.sessions_floor.map((floor) => (floor as { readonly user: object }).user),
        [{ format: "iss_sub", iss: issuer, sub: pat }],
      )
      assert.deepInclude(
        yield* acknowledge({ ...made.asking, cursor: read.cursor, installed_version: "1", chain_head: genesis }),
        { head: 0, lag: 0 },
      )
      yield* change(made)
      yield* signAll
      const { items } = yield* everything(made.asking, read.cursor)
      assert.deepStrictEqual(items.map(({ position }) => position), [1])
    }))

  it.effect("a held installation activates nothing new and still revokes", () =>
    Effect.gen(function* () {
      const { revoke } = yield* ServiceGrants
      const made = yield* scene
      yield* failOver
      // No process has noticed the fail-over yet: an activation must notice it itself and be refused.
      assert.strictEqual(yield* tagOf(grant(made, "another")), "Held")
      yield* change(made)
      assert.strictEqual(yield* tagOf(grant(made, "another")), "Held")
      const on = { personId: made.administrator, projectId: made.project, grantId: made.grantId }
      assert.strictEqual((yield* run(revoke({ ...on, reason: "not wanted any more" }))).state, "revoked")
      yield* open
      assert.strictEqual(yield* tagOf(grant(made, "another")), "done")
    }))

  it.effect("a new epoch voids mailed links and unfinished changes of credentials", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`
        insert into link_proofs (id, person_id, issuer, subject, jti, created_at, expires_at)
        values (gen_random_uuid(), 'somebody', 'i', 's', 'j', '2026-01-01', '2036-01-01')`
      yield* failOver
      assert.isTrue(yield* ensureEpoch(sql))
      assert.deepStrictEqual(yield* sql`select from link_proofs where consumed_at is null`, [])
      yield* open
    }))
})
