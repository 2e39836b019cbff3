/** What keeps a held installation from opening by itself, over the whole app: its worker looks once a second. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { settleEpoch } from "../../../services/lifecycle/Epochs.ts"
import { Bus } from "../../../services/platform/Bus.ts"
import { Database } from "../../../services/platform/Database.ts"
import { type InstallationRow, readInstallation } from "../../../services/platform/Installation.ts"
import { until } from "../../e2e/support/until.ts"
import { access, institution, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"

const installation = Effect.flatMap(Database, ({ sql }) => readInstallation(sql))
const comes = (what: string, good: (row: InstallationRow) => boolean) => until(what, installation, good)

/** As the server that took this one's place finds it. */
const failOver = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set timeline_id = '0000FFFF', server = 'another'`),
)

const open = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set state = 'open', held_since = null, held_reason = null`),
)

/** Something is told and published. */
const told = Effect.gen(function* () {
  const { sql } = yield* Database
  const fern = yield* institution()
  const portal = yield* project(fern)
  yield* access(fern, portal, yield* person())
  yield* until(
    "published",
    sql<{ n: number }>`
      select count(*)::int as n from outbox
      where stream = 'LIFECYCLE' and aggregate_id = ${portal} and published_at is not null`,
    ([row]) => row!.n > 1,
  )
})

layer(management({ ROLES: "api,lifecycle,relay" }), { excludeTestServices: true, timeout: "60 seconds" })(
  "Recovery",
  (it) => {
    it.effect("a fail-over that lost nothing is over by itself, in a new epoch", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* told
        yield* failOver
        yield* comes("held and open again", ({ epoch, opened_at, state }) =>
          epoch === 2 && state === "open" && opened_at !== null)
        assert.deepStrictEqual(
          yield* sql`select action, outcome from audit_records where subject = 'installation:2' order by id`,
          ["installation.held", "recovery.looked-back", "installation.opened"].map((action) => ({
            action,
            outcome: "done",
          })),
        )
      }), 60_000)

    it.effect("a history that somebody told under our number is never gone on with", () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        yield* told
        const { epoch } = yield* installation
        // As when the same backup was put back once before: what was told then is known to the stream alone.
        yield* owner.unsafe("alter table lifecycle_events disable trigger user")
        const lost = yield* owner<{ id: string }>`
          delete from lifecycle_events where epoch = ${epoch} returning id::text as id`
        yield* owner.unsafe("alter table lifecycle_events enable trigger user")
        assert.isAbove(lost.length, 0)
        yield* sql`update installation set epoch = ${epoch - 1}`
        yield* failOver
        yield* comes("open beyond it", (row) => row.state === "open" && row.epoch > epoch)
        assert.strictEqual((yield* installation).epoch, epoch + 1)
      }), 60_000)

    it.effect(
      "a stream that is not the one that was told keeps it held, until an operator opens it",
      () =>
        Effect.gen(function* () {
          const { sql } = yield* Database
          // At once: the relay looks at the stream, too.
          yield* sql.withTransaction(Effect.gen(function* () {
            yield* sql`update relay_streams set created = 'another day' where stream = 'LIFECYCLE'`
            yield* failOver
            assert.isTrue(yield* settleEpoch(sql))
          }))
          yield* comes("held for the stream", ({ held_reason }) => held_reason === "stream_gone")
          yield* open
          assert.strictEqual((yield* installation).state, "open")
        }),
      60_000,
    )

    it.effect("a message of the lost time that no key of ours made keeps it held", () =>
      Effect.gen(function* () {
        yield* (yield* Bus).publish("lifecycle.v1.somebody.access-revoked", "no message of ours")
        yield* failOver
        yield* comes("held for the message", ({ held_reason }) => held_reason === "unverifiable_messages")
        yield* open
      }), 60_000)
  },
)
