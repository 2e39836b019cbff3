/** Messages that the broker lost keep a held installation from opening, and are named; a whole history opens it. */
import { assert, layer } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import * as fc from "fast-check"
import { PersonId } from "../../../schemas/BrandedIds.ts"
import { settleEpoch } from "../../../services/lifecycle/Epochs.ts"
import { memberships } from "../../../services/people/Memberships.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import type { Audit } from "../../../services/platform/observability/Audit.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { type InstallationRow, readInstallation } from "../../../services/platform/database/Installation.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { claimed } from "../../../services/recovery/LostEvent.ts"
import { type GivenMessage, supplyMessages } from "../../../services/recovery/SuppliedMessages.ts"
import { textOf } from "../../../src/doctor/Finding.ts"
import { installation as doctor, meaningOf, missingText } from "../../../src/doctor/InstallationCheck.ts"
import { runs } from "../../support/Runs.ts"
import { until } from "../../e2e/support/Until.ts"
import { TestBus } from "../../support/TestBus.ts"
import { access, institution, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"

/** The maker and the approver of decisions. */
const [sam, ada] = [PersonId.make("sam"), PersonId.make("ada")]

type Stream = "LIFECYCLE" | "TRANSFERS" | "DIRECTORY"

const installation = Effect.flatMap(Database, ({ sql }) => readInstallation(sql))
const comes = (what: string, good: (row: InstallationRow) => boolean) => until(what, installation, good)

/** The stream manager of the test's broker, beside the program's own connection. */
const broker = Effect.gen(function* () {
  const { url } = yield* TestBus
  const nc = yield* Effect.acquireRelease(
    Effect.promise(() => {
      const { host, password, username } = new URL(Redacted.value(url))
      return connect({ servers: host, user: username, pass: password })
    }),
    (nc) => Effect.promise(() => nc.close()),
  )
  return yield* Effect.promise(() => jetstreamManager(nc))
})

const lastOf = (stream: Stream) => Effect.flatMap(Bus, (bus) => Effect.map(bus.mark(stream), ({ lastSeq }) => lastSeq))

/** Waits until the outbox is published. */
const published = Effect.flatMap(
  Database,
  ({ sql }) => until("published", sql`select from outbox where published_at is null`, (rows) => rows.length === 0),
)

/** Decisions published on LIFECYCLE and DIRECTORY, and messages of a transfer that this database does not know. */
const decided = Effect.gen(function* () {
  const { sql } = yield* Database
  const { seat } = memberships(sql, yield* Outbox)
  const [fern, pat] = [yield* institution(), yield* person()]
  const portal = yield* project(fern)
  for (const _ of [1, 2, 3]) yield* access(fern, portal, yield* person())
  for (const role of ["sponsor", "administrator"] as const) {
    for (const state of ["active", "ended"] as const) {
      yield* run(seat({ institutionId: fern, personId: pat, role, state, madeBy: sam, approvedBy: [ada] }))
    }
  }
  const told = { id: crypto.randomUUID(), domain_id: crypto.randomUUID(), target_org_id: null }
  for (const status of ["pending", "accepted", "cancelled"]) {
    yield* (yield* Bus).publish(`transfers.v1.${told.domain_id}.${status}`, JSON.stringify({ ...told, status }))
  }
  yield* until(
    "signed",
    sql`
    select from lifecycle_heads h left join lifecycle_signed s on s.project_id = h.project_id
    where (s.epoch, s.position) is distinct from (h.epoch, h.position) and h.position > 0`,
    (rows) => rows.length === 0,
  )
  yield* published
  return { project: portal }
})

/**
 * Makes the database that of a backup made when the streams were at `known`, as a restore finds it; in one transaction,
 * since the relay looks at the streams too. `lost`: events of this project after this position are not in the backup.
 */
const putBack = Effect.fnUntraced(function* (
  known: Readonly<Record<Stream, number>>,
  lost?: { readonly project: string; readonly after: number },
) {
  const { owner, sql } = yield* Database
  if (lost !== undefined) {
    yield* owner.unsafe("alter table lifecycle_events disable trigger user")
    yield* owner`delete from lifecycle_events where project_id = ${lost.project} and position > ${lost.after}`
    yield* owner.unsafe("alter table lifecycle_events enable trigger user")
    yield* sql`
      update lifecycle_heads h set position = e.position, digest = e.digest from lifecycle_events e
      where h.project_id = ${lost.project} and e.project_id = h.project_id and e.position = ${lost.after}`
  }
  yield* sql.withTransaction(Effect.gen(function* () {
    for (const [stream, seq] of Object.entries(known)) {
      yield* sql`
        insert into relay_streams (stream, created, last_seq, server)
        values (${stream}, ${(yield* (yield* Bus).mark(stream as Stream)).created}, ${seq}, 'before')
        on conflict (stream) do update set last_seq = excluded.last_seq, went_back_to = null`
    }
    yield* sql`update installation set timeline_id = '0000FFFF', server = 'another'`
    assert.isTrue(yield* settleEpoch(sql))
  }))
})

const marks = Effect.gen(function* () {
  return {
    LIFECYCLE: yield* lastOf("LIFECYCLE"),
    TRANSFERS: yield* lastOf("TRANSFERS"),
    DIRECTORY: yield* lastOf("DIRECTORY"),
  }
})

/** Waits until the installation is held for these missing messages, compares its records, and opens it. */
const heldFor = Effect.fnUntraced(function* (missing: InstallationRow["missing"]) {
  const { sql } = yield* Database
  const row = yield* comes("held for what is missing", ({ held_reason }) => held_reason === "messages_missing")
  assert.deepStrictEqual(row.missing, missing)
  const says = textOf(yield* doctor)
  assert.include(says, meaningOf("messages_missing"))
  for (const one of missing) assert.include(says, missingText(one))
  const audited = yield* sql<{ details: object; outcome: string }>`
    select details, outcome from audit_records
    where action = 'recovery.messages-missing' and subject = ${`installation:${row.epoch}`} order by id`
  assert.deepStrictEqual(audited, missing.map((details) => ({ details, outcome: "failed" })))
  yield* sql`
    update installation set state = 'open', held_since = null, held_reason = null, missing = '[]'`
})

/** The messages of the streams after these marks, as a mirror has them. */
const mirrored = Effect.fnUntraced(function* (known: Readonly<Record<Stream, number>>) {
  const { streams } = yield* broker
  const found: Array<GivenMessage & { readonly sequence: number }> = []
  for (const stream of ["LIFECYCLE", "TRANSFERS", "DIRECTORY"] as const) {
    const last = yield* lastOf(stream)
    for (let sequence = known[stream] + 1; sequence <= last; sequence++) {
      const message = yield* Effect.promise(() => streams.getMessage(stream, { seq: sequence }))
      if (message !== null) found.push({ stream, sequence, subject: message.subject, data: message.string() })
    }
  }
  return found
})

/**
 * An Access is revoked in the lost time, among other decisions; the broker loses that message and those that `lost` picks.
 * Gives back what it lost, the revocation among it, in the order of `lost`.
 */
const revokedAndLost = Effect.fnUntraced(function* (lost: ReadonlyArray<number>) {
  const { sql } = yield* Database
  const { streams } = yield* broker
  const [fern, pat] = [yield* institution(), yield* person()]
  const portal = yield* project(fern)
  const id = yield* access(fern, portal, pat)
  yield* decided
  const [head] = yield* sql<{ position: number }>`
    select position::int as position from lifecycle_heads where project_id = ${portal}`
  const known = (yield* mirrored({ LIFECYCLE: 0, TRANSFERS: 1e9, DIRECTORY: 1e9 }))
    .find(({ subject }) => subject?.startsWith(`lifecycle.v1.${portal}.`))!
  const before = yield* marks
  yield* access(fern, portal, pat, { id, version: 2, state: "revoked" })
  yield* decided
  const all = yield* mirrored(before)
  const revocation = all.find(({ subject }) => subject?.startsWith(`lifecycle.v1.${portal}.`))!
  const others = all.filter((one) => one !== revocation)
  const gone = [...new Set([...lost.map((n) => others[n % others.length]!), revocation])]
    .sort((a, b) => (lost[a.sequence % lost.length] ?? 0) - (lost[b.sequence % lost.length] ?? 0))
  for (const { sequence, stream } of gone) yield* Effect.promise(() => streams.deleteMessage(stream, sequence))
  yield* sql`update access set state = 'active' where id = ${id}`
  // This database has the events of the other projects, but had not known that they were published.
  yield* sql`update outbox set published_at = now() + interval '1 minute' where id::text = any(${
    all.flatMap(({ data, stream }) => stream === "LIFECYCLE" ? [claimed(data)!.id] : [])
  })`
  yield* putBack(before, { project: portal, after: head!.position })
  yield* comes("held for what is missing", ({ held_reason }) => held_reason === "messages_missing")
  const state = Effect.map(
    sql<{ state: string }>`select state from access where id = ${id}`,
    ([row]) => row!.state,
  )
  return { gone, id, known, portal, revocation, state }
})

const sequencesOf = ({ missing }: InstallationRow) =>
  missing.filter(({ project_id }) => project_id === undefined)
    .flatMap(({ first, last, stream }) => Array.from({ length: last - first + 1 }, (_, n) => `${stream} ${first + n}`))
    .sort()

layer(management({ ROLES: "api,lifecycle,relay" }), { excludeTestServices: true, timeout: "2 minutes" })(
  "Messages of the lost time that the broker lost",
  (it) => {
    it.effect("none missing: the installation opens by itself", () =>
      Effect.gen(function* () {
        const before = yield* marks
        const { project } = yield* decided
        yield* putBack(before, { project, after: 1 })
        const { epoch } = yield* installation
        yield* comes("open", (row) => row.epoch === epoch && row.state === "open")
        assert.deepStrictEqual((yield* installation).missing, [])
      }), 120_000)

    for (const stream of ["LIFECYCLE", "TRANSFERS", "DIRECTORY"] as const) {
      it.effect(
        `${stream}: a message in the middle and one at the end hold the installation`,
        () =>
          Effect.gen(function* () {
            const { streams } = yield* broker
            const before = yield* marks
            yield* decided
            const first = before[stream] + 1
            const last = yield* lastOf(stream)
            assert.isAbove(last, first + 1)
            yield* Effect.promise(() => streams.deleteMessage(stream, first + 1))
            yield* Effect.promise(() => streams.deleteMessage(stream, last))
            yield* putBack(before)
            yield* heldFor(
              last === first + 2
                ? [{ stream, first: first + 1, last }]
                : [{ stream, first: first + 1, last: first + 1 }, { stream, first: last, last }],
            )
          }),
        120_000,
      )
    }

    it.effect("a purged stream holds it; messages from before the backup are no loss", () =>
      Effect.gen(function* () {
        const { streams } = yield* broker
        yield* decided
        const known = yield* marks
        yield* Effect.promise(() => streams.purge("TRANSFERS", { seq: known.TRANSFERS }))
        yield* Effect.promise(() => streams.deleteMessage("DIRECTORY", known.DIRECTORY - 1))
        yield* putBack(known)
        const { epoch } = yield* installation
        yield* comes("open", (row) => row.epoch === epoch && row.state === "open")

        yield* decided
        const last = yield* lastOf("TRANSFERS")
        yield* Effect.promise(() => streams.purge("TRANSFERS"))
        yield* putBack(known)
        yield* heldFor([{ stream: "TRANSFERS", first: known.TRANSFERS + 1, last }])
      }), 120_000)

    it.effect(
      "a stream whose sequence went back holds it, noticed by recovery or by the relay",
      () =>
        Effect.gen(function* () {
          const { sql } = yield* Database
          const known = yield* marks
          yield* putBack({ ...known, DIRECTORY: known.DIRECTORY + 2 })
          yield* heldFor([{ stream: "DIRECTORY", first: known.DIRECTORY + 1, last: known.DIRECTORY + 2 }])
          // The relay had noticed it, and published again since.
          yield* sql.withTransaction(Effect.gen(function* () {
            yield* putBack(known)
            yield* sql`update relay_streams set went_back_to = ${known.LIFECYCLE - 1} where stream = 'LIFECYCLE'`
          }))
          yield* heldFor([{ stream: "LIFECYCLE", first: known.LIFECYCLE, last: known.LIFECYCLE }])
        }),
      120_000,
    )

    it.effect("messages that are back let it open by itself", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const known = yield* marks
        yield* putBack({ ...known, DIRECTORY: known.DIRECTORY + 1 })
        yield* comes("held", ({ held_reason }) => held_reason === "messages_missing")
        yield* (yield* Bus).publish("directory.v1.domain.again", JSON.stringify({ kind: "domain" }))
        yield* sql`update relay_streams set went_back_to = null`
        yield* comes("open", ({ state }) => state === "open")
        assert.deepStrictEqual((yield* installation).missing, [])
      }), 120_000)

    it.effect(
      "whatever the broker lost, the installation opens once all of it is supplied, and not before",
      () =>
        Effect.gen(function* () {
          const supply = yield* supplyMessages
          const context = yield* Effect.context<Effect.Services<ReturnType<typeof revokedAndLost>> | Audit>()
          const law = Effect.fnUntraced(function* (lost: ReadonlyArray<number>) {
            const { gone, state } = yield* revokedAndLost(lost)
            const left = [...gone]
            while (left.length > 0) {
              const names = left.map(({ sequence, stream }) => `${stream} ${sequence}`).sort()
              const row = yield* comes("held for the rest", (row) => sequencesOf(row).join() === names.join())
              assert.strictEqual(row.state, "held")
              const next = left.shift()!
              assert.deepInclude(yield* supply([next, next], "from the mirror"), { added: 1, refused: null })
            }
            yield* comes("open", (row) => row.state === "open")
            assert.strictEqual(yield* state, "revoked")
          }, Effect.scoped)
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(
                fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 4 }),
                (lost) => Effect.runPromiseWith(context)(law(lost)),
              ),
              { numRuns: runs(3) },
            )
          )
        }),
      120_000,
    )

    it.effect("what nobody of us signed, and what is not missing, is not taken", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const supply = yield* supplyMessages
        assert.isNull(yield* supply([], "nothing is missing"))
        const { gone, known, portal, revocation } = yield* revokedAndLost(Array.from({ length: 40 }, (_, n) => n))
        const other = gone.find(({ stream }) => stream === "TRANSFERS")!
        const [head, body, signature] = revocation.data.split(".")
        const claims = JSON.parse(Buffer.from(body!, "base64url").toString())
        const forged = Buffer.from(JSON.stringify({ ...claims, iat: claims.iat + 1 })).toString("base64url")
        const refusals = [
          [{ ...revocation, data: [head, forged, signature].join(".") }, /no key of this installation/],
          [{ ...revocation, data: "none" }, /no lifecycle message/],
          [{ ...revocation, sequence: revocation.sequence + 1_000 }, /is not missing/],
          [{ ...revocation, subject: "directory.v1.api_key.x" }, /its subject is none of LIFECYCLE/],
          [{ ...revocation, subject: `lifecycle.v1.${portal}.access-changed` }, /its subject is not that of its data/],
          [{ ...revocation, data: known.data, subject: known.subject }, /this database has its event/],
          [
            { ...other, data: JSON.stringify({ ...JSON.parse(other.data), domain_id: crypto.randomUUID() }) },
            /not that of/,
          ],
          [{ ...revocation, stream: "DIRECTORY", subject: null, sequence: null }, /not signed needs its sequence/],
        ] as const
        for (const [one, why] of refusals) {
          const supplied = yield* supply([...gone, one], "one of them is wrong")
          assert.strictEqual(supplied!.added, 0)
          assert.strictEqual(supplied!.refused!.at, gone.length)
          assert.match(supplied!.refused!.why, why)
        }
        const wrong = { ...other, data: JSON.stringify({ ...JSON.parse(other.data), status: "declined" }) }
        const first = { ...wrong, subject: other.subject!.replace(/\w+$/, "declined") }
        assert.deepInclude(yield* supply([other, first], "two of one sequence"), {
          added: 0,
          refused: { at: 1, why: "another message of its place is given, too" },
        })
        assert.deepInclude(yield* supply([first], "a wrong one"), { added: 1, refused: null })
        assert.deepInclude(yield* supply([other], "the right one in its place"), { added: 1, refused: null })
        assert.deepStrictEqual(
          yield* sql`select data from supplied_messages where stream = 'TRANSFERS' and sequence = ${other.sequence}`,
          [{ data: other.data }],
        )
        yield* supply(gone, "all of them are right")
        yield* comes("open", (row) => row.state === "open")
      }).pipe(Effect.scoped), 120_000)

    it.effect(
      "what was supplied for one hold is not read in a later one: what was given back since stays",
      () =>
        Effect.gen(function* () {
          const { sql } = yield* Database
          const supply = yield* supplyMessages
          const { gone, id, state } = yield* revokedAndLost([3])
          assert.deepInclude(yield* supply(gone, "from the mirror"), { added: gone.length, refused: null })
          yield* comes("open", (row) => row.state === "open")
          assert.strictEqual(yield* state, "revoked")
          yield* published
          yield* sql`update access set state = 'active' where id = ${id}`
          yield* putBack(yield* marks)
          const { epoch } = yield* installation
          yield* comes("open", (row) => row.epoch === epoch && row.state === "open")
          assert.strictEqual(yield* state, "active")
          assert.deepStrictEqual(yield* sql`select from supplied_messages`, [])
        }).pipe(Effect.scoped),
      120_000,
    )

    it.effect(
      "an event that a consumer kept closes its project's gap; what was known before revokes nothing again",
      () =>
        Effect.gen(function* () {
          const { sql, owner } = yield* Database
          const { streams } = yield* broker
          const supply = yield* supplyMessages
          const [fern, pat] = [yield* institution(), yield* person()]
          const portal = yield* project(fern)
          const id = yield* access(fern, portal, pat)
          yield* access(fern, portal, pat, { id, version: 2, state: "revoked" })
          yield* access(fern, portal, pat, { id, version: 3, state: "active" })
          yield* decided
          const [head] = yield* sql<{ position: number }>`
          select position::int as position from lifecycle_heads where project_id = ${portal}`
          const other = yield* access(fern, portal, yield* person())
          yield* access(fern, portal, yield* person())
          yield* decided
          const all = (yield* mirrored({ LIFECYCLE: 0, TRANSFERS: 1e9, DIRECTORY: 1e9 }))
            .filter(({ subject }) => subject?.startsWith(`lifecycle.v1.${portal}.`))
          // One is lost; those before are too old for the stream and the database, which keeps the newest alone.
          for (const { sequence } of all.slice(0, -1)) {
            yield* Effect.promise(() => streams.deleteMessage("LIFECYCLE", sequence))
          }
          yield* owner.unsafe("alter table lifecycle_events disable trigger user")
          yield* owner`delete from lifecycle_events where project_id = ${portal} and position <= ${head!.position - 1}`
          yield* owner.unsafe("alter table lifecycle_events enable trigger user")
          yield* putBack(yield* marks, { project: portal, after: head!.position })
          yield* comes("held", ({ held_reason }) => held_reason === "messages_missing")
          const alone = all.slice(0, -1).map((one) => ({ ...one, sequence: null, subject: null }))
          assert.deepInclude(yield* supply(alone, "from a consumer"), { added: 1, refused: null })
          yield* comes("open", (row) => row.state === "open")
          assert.deepStrictEqual(
            yield* sql`select id, state from access where id in (${id}, ${other}) order by id = ${other}`,
            [{ id, state: "active" }, { id: other, state: "active" }],
          )
        }).pipe(Effect.scoped),
      120_000,
    )

    it.effect(
      "a project's events lost within known sequences are found by positions and digests",
      () =>
        Effect.gen(function* () {
          const { streams } = yield* broker
          const { project } = yield* decided
          const found = yield* Effect.promise(() =>
            streams.info("LIFECYCLE", { subjects_filter: `lifecycle.v1.${project}.*` })
          )
          assert.isAbove(Object.values(found.state.subjects ?? {}).reduce((sum, n) => sum + n, 0), 3)
          // Lost before the last sequence that the backup knows, as when the broker's numbers were given once more.
          const known = yield* marks
          const own: Array<number> = []
          for (let seq = 1; seq <= known.LIFECYCLE; seq++) {
            const message = yield* Effect.promise(() => streams.getMessage("LIFECYCLE", { seq }))
            if (message?.subject.startsWith(`lifecycle.v1.${project}.`)) own.push(seq)
          }
          yield* Effect.promise(() => streams.deleteMessage("LIFECYCLE", own[2]!))
          const epoch = (yield* installation).epoch
          yield* putBack(known, { project, after: 1 })
          const lost = own.indexOf(own[2]!) + 1
          yield* heldFor([{ stream: "LIFECYCLE", project_id: project, epoch, first: lost, last: lost }])
        }),
      120_000,
    )
  },
)
