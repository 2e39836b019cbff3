/**
 * Reasons for which a held installation does not open by itself, over the whole app, whose worker looks once a second.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes, randomUUID } from "node:crypto"
import { ApiKeyId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { Principal } from "../../../schemas/api/CredentialsApi.ts"
import type { MembershipRole, MembershipState } from "../../../schemas/identity/IdentityDirectory.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { settleEpoch } from "../../../services/lifecycle/Epochs.ts"
import { Authenticators } from "../../../services/people/Authenticators.ts"
import { memberships } from "../../../services/people/Memberships.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { type InstallationRow, readInstallation } from "../../../services/platform/database/Installation.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { until } from "../../e2e/support/Until.ts"
import { access, institution, member, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"

/** The maker and the approver of decisions. */
const [sam, ada] = [PersonId.make("sam"), PersonId.make("ada")]

const installation = Effect.flatMap(Database, ({ sql }) => readInstallation(sql))
const comes = (what: string, good: (row: InstallationRow) => boolean) => until(what, installation, good)

/** The installation's row as a promoted standby finds it. */
const failOver = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set timeline_id = '0000FFFF', server = 'another'`),
)

const open = Effect.flatMap(
  Database,
  ({ sql }) => Effect.asVoid(sql`update installation set state = 'open', held_since = null, held_reason = null`),
)

/** Appends events and waits until they are published. */
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

layer(management({ ROLES: "api,lifecycle,relay" }), { excludeTestServices: true, timeout: "2 minutes" })(
  "Recovery",
  (it) => {
    it.effect("a fail-over that lost nothing ends by itself, in a new epoch", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* told
        const next = (yield* installation).epoch + 1
        yield* failOver
        yield* comes("held and open again", ({ epoch, opened_at, state }) =>
          epoch === next && state === "open" && opened_at !== null)
        assert.deepStrictEqual(
          yield* sql`select action, outcome from audit_records where subject = ${`installation:${next}`} order by id`,
          ["installation.held", "recovery.looked-back", "installation.opened"].map((action) => ({
            action,
            outcome: "done",
          })),
        )
      }), 120_000)

    it.effect(
      "a revocation of the lost time that no project's events tell is applied again, unless given back since",
      () =>
        Effect.gen(function* () {
          const { sql } = yield* Database
          const { seat } = memberships(sql, yield* Outbox)
          const authenticators = yield* Authenticators
          const before = yield* sql`select from outbox where stream = 'DIRECTORY'`
          const [fern, gone, back, late] = yield* Effect.all([institution(), person(), person(), person()])
          const seats = [yield* member(fern, gone, "administrator"), yield* member(fern, back, "sponsor")]
          const to = (personId: PersonId, role: MembershipRole, state: MembershipState) =>
            run(seat({ institutionId: fern, personId, role, state, madeBy: sam, approvedBy: [ada] }))
          const keyId = randomUUID()
          const accountId = randomUUID()
          const authenticator = randomUUID()
          const having = sql`
          insert into authenticators (id, person_id, kind, label, created_at)
          values (${authenticator}::uuid, ${gone}, 'recovery_codes', 'Codes', 'epoch')`
          yield* having
          yield* sql`
          insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
          values (${keyId}::uuid, ${accountId}::uuid, 'ci', ${
            randomBytes(32)
          }, 'mail_k_12345678', '{send}', true, 'epoch')`

          yield* to(gone, "administrator", "ended")
          yield* to(back, "sponsor", "suspended")
          yield* to(back, "sponsor", "active")
          yield* to(late, "member", "active")
          yield* to(late, "member", "ended")
          const { id: fresh } = yield* run(authenticators.replaceCodes(gone, "Codes"))
          yield* (yield* ApiKeys).revoke({ accountId } as Principal["Service"], ApiKeyId.make(keyId))
          yield* until(
            "published",
            sql`select from outbox where stream = 'DIRECTORY' and published_at is null`,
            (rows) => rows.length === 0,
          )
          const said = yield* sql<{ payload: string }>`
            select payload from outbox where stream = 'DIRECTORY' order by id offset ${before.length}`
          assert.lengthOf(said, 7)
          assert.notMatch(JSON.stringify(said), /hash|secret|code|label|mail_k_/i)

          // As an older backup has it.
          yield* sql`
          update institution_memberships set state = 'active', state_decided = false where id = any(${seats}::text[])`
          yield* sql`delete from institution_memberships where person_id = ${late}`
          yield* sql`update api_keys set is_active = true, revoked_at = null where id = ${keyId}::uuid`
          yield* sql`delete from authenticators where id = ${fresh}::uuid`
          yield* having
          const { epoch } = yield* installation
          yield* failOver
          yield* comes("open again", (row) => row.epoch === epoch + 1 && row.state === "open")
          assert.deepStrictEqual(
            yield* sql`
            select person_id, state, state_decided from institution_memberships where institution_id = ${fern}
            order by array_position(${[gone, back, late]}::text[], person_id)`,
            [
              { person_id: gone, state: "ended", state_decided: true },
              { person_id: back, state: "active", state_decided: false },
              { person_id: late, state: "ended", state_decided: true },
            ],
          )
          assert.deepStrictEqual(yield* sql`select is_active from api_keys where id = ${keyId}::uuid`, [{
            is_active: false,
          }])
          assert.deepStrictEqual(yield* sql`select from authenticators where person_id = ${gone}`, [])
          const audited = yield* sql<{ subject: string }>`
          select subject from audit_records where action = 'recovery.reapplied' order by subject`
          assert.includeMembers(audited.map(({ subject }) => subject), [
            ...[`api-key:${keyId}`, `authenticator:${authenticator}`, `institution-membership:${seats[0]}`],
          ])
        }),
      120_000,
    )

    it.effect("a history with other events under our positions is never continued", () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        yield* told
        const { epoch } = yield* installation
        // As after an earlier restore of the same backup: events of that time are known to the stream alone.
        yield* owner.unsafe("alter table lifecycle_events disable trigger user")
        const lost = yield* owner<{ id: string }>`
          delete from lifecycle_events where epoch = ${epoch} returning id::text as id`
        yield* owner.unsafe("alter table lifecycle_events enable trigger user")
        assert.isAbove(lost.length, 0)
        yield* sql`update installation set epoch = ${epoch - 1}`
        yield* failOver
        yield* comes("open beyond it", (row) => row.state === "open" && row.epoch > epoch)
        assert.strictEqual((yield* installation).epoch, epoch + 1)
      }), 120_000)

    it.effect(
      "a stream other than the one published to keeps it held until an operator opens it",
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
      120_000,
    )

    it.effect("a message of the lost time not signed by a key of ours keeps it held", () =>
      Effect.gen(function* () {
        yield* (yield* Bus).publish("lifecycle.v1.somebody.access-revoked", "no message of ours")
        yield* failOver
        yield* comes("held for the message", ({ held_reason }) => held_reason === "unverifiable_messages")
        yield* open
      }), 120_000)
  },
)
