/**
 * The transparency log: what a decision costs with its leaf and without, alternately on one database; and the Access of
 * an institution at a past moment beside many versions. A look that reads twice as much beside all of
 * them fails the run.
 */
import { Effect, Layer, Redacted, References } from "effect"
import { AccessReviews } from "../../services/access/AccessReviews.ts"
import { pastAccess } from "../../services/access/PastAccess.ts"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { Roles } from "../../services/people/Roles.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { runOnce } from "../../services/platform/database/UnitOfWork.ts"
import { InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { accessId, administrator, fill, institutionId, sponsor } from "../harness/IdentityFixture.ts"
import { silent } from "../harness/LifecycleSeed.ts"
import type { Fixture } from "../harness/Servers.ts"

const template = "decision-log"

const failed = (cause: unknown) =>
  cause instanceof BenchError ? cause : new BenchError({ message: `decision log: ${String(cause)}` })

/** The audit as it is, and one whose records get no leaves. */
const audits = {
  with: Audit.layer,
  without: Layer.effect(
    Audit,
    Effect.map(
      Audit,
      ({ append }) =>
        Audit.of({ append: (...entries) => append(...entries.map((entry) => ({ ...entry, decision: false }))) }),
    ),
  ).pipe(Layer.provide(Audit.layer)),
}
type How = keyof typeof audits

const reviews = (how: How) =>
  Layer.fresh(AccessReviews.layer).pipe(
    Layer.provide(Layer.fresh(AccessVersions.layer)),
    Layer.provide(Layer.fresh(Layer.mergeAll(EventLog.layer, Roles.layer, audits[how]))),
    Layer.provide(silent),
  )

const timed = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const from = performance.now()
  const done = yield* work
  return [performance.now() - from, done] as const
})

/** Proposes and approves the review of Access `n`; returns the milliseconds of both. */
const decided = Effect.fnUntraced(function* (service: AccessReviews["Service"], n: number) {
  const by = { institutionId: institutionId(n), reason: "as the bench has it" }
  const proposal = { access_id: accessId(n), access_version: 1, personId: PersonId.make(sponsor(n)) }
  const [proposed, { review_id: reviewId }] = yield* timed(runOnce(service.propose({ ...by, ...proposal })))
  const approval = { ...by, reviewId, personId: PersonId.make(administrator(n)), stepUp: Effect.void }
  const [approved] = yield* timed(runOnce(service.approve(approval)))
  return { proposed, approved }
})

const sizes = { quick: { decisions: 600, versions: 100_000 }, full: { decisions: 3_000, versions: 1_000_000 } }
const inTurn = 20

/** Decisions with and without, in turns; medians of milliseconds. */
const costs = Effect.fnUntraced(function* (fixture: Fixture, decisions: number) {
  const empty = (): Record<"approved" | "proposed", Array<number>> => ({ proposed: [], approved: [] })
  const millis = { with: empty(), without: empty() }
  const of = (how: How) => Effect.provide(AccessReviews, reviews(how))
  const services = { with: yield* of("with"), without: yield* of("without") }
  for (let n = 0; n < decisions; n++) {
    // Which of the two is first changes from turn to turn.
    const turn = Math.floor(n / inTurn)
    const how: How = (turn + (turn >> 1)) % 2 === 0 ? "with" : "without"
    const { approved, proposed } = yield* decided(services[how], n)
    if (turn < 2) continue
    millis[how].proposed.push(proposed)
    millis[how].approved.push(approved)
  }
  const [leaves] = yield* fixture.sql<{ n: number }>`select count(*)::int as n from log_pending`
  const [records] = yield* fixture.sql<{ n: number }>`
    select count(*)::int as n from audit_records where action like 'access-review.%'`
  if (leaves!.n === 0 || leaves!.n >= records!.n) return yield* failed(`${leaves!.n} leaves of ${records!.n} records`)
  const medians = (how: How) => ({ propose: median(millis[how].proposed), approve: median(millis[how].approved) })
  return { with: medians("with"), without: medians("without") }
})

/** Versions of one Access: granted and revoked in turn, so that half of all Accesses are in force at any moment. */
const versionsEach = 10
const institutionsOfVersions = 10
const page = 40
const travelled = InstitutionId.make("past-0")

/** Versions `from` to `to`, an hour between two of one Access. */
const writeVersions = ({ sql }: Pick<Fixture, "sql">, from: number, to: number) =>
  sql`
    insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
      event_id, created_at)
    select 'past-' || lpad(a::text, 8, '0'), v, 'past-' || a % ${institutionsOfVersions}::int, 'project-0-0', 'user-0',
      'user', case when (v + a / ${institutionsOfVersions}::int) % 2 = 1 then 'active' else 'revoked' end,
      'sha256:' || repeat('0', 64), gen_random_uuid(), timestamptz '2026-01-01' + v * interval '1 hour'
    from generate_series(1, ${versionsEach}::int) v,
      generate_series(${from / versionsEach}::int, ${to / versionsEach - 1}::int) a`

interface Look {
  readonly versions: number
  readonly hour: number
  readonly rows: number
  readonly millis: number
  readonly blocks: number
}

/** Pages at several moments, from the first Access on: milliseconds, and blocks that PostgreSQL read. */
const looks = Effect.fnUntraced(function* ({ sql }: Fixture, versions: number) {
  const found: Array<Look> = []
  for (const hour of [1, 5, 10]) {
    const at = new Date(Date.parse("2026-01-01T00:30:00Z") + hour * 3_600_000)
    const look = () => pastAccess(sql, travelled, { at, limit: page, afterId: null })
    const rows = yield* look()
    const plan = yield* sql<{ "QUERY PLAN": ReadonlyArray<{ Plan: Readonly<Record<string, number>> }> }>`
      explain (analyze, buffers, format json) ${look()}`
    const { Plan } = plan[0]!["QUERY PLAN"][0]!
    const millis = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.map(timed(look()), ([ms]) => ms))
    found.push({
      versions,
      hour,
      rows: rows.length,
      millis: median(millis),
      blocks: Plan["Shared Hit Blocks"]! + Plan["Shared Read Blocks"]!,
    })
  }
  return found
})

/** A tree of more rows is a level higher, for each of the Accesses that are looked up. */
const most = 2

const measured = Effect.fnUntraced(function* (run: Run) {
  const { decisions, versions } = run.quick ? sizes.quick : sizes.full
  yield* run.servers.template(template, fill(decisions))
  const rounds: Array<Effect.Success<ReturnType<typeof costs>>> = []
  for (let round = 1; round <= run.rounds; round++) {
    yield* run.tell(`${decisions} decisions, round ${round} of ${run.rounds}`)
    rounds.push(
      yield* Effect.scoped(Effect.gen(function* () {
        const fixture = yield* run.servers.fixture(template)
        const database = Database.layer({
          url: Redacted.make(fixture.databaseUrl),
          ownerUrl: Redacted.make(fixture.ownerUrl),
          maxConnections: 2,
        })
        return yield* Effect.provide(costs(fixture, decisions), database)
      })),
    )
  }
  const fixture = yield* run.servers.fixture(template)
  const some = versions / 10
  const seen: Array<Look> = []
  for (const [from, to] of [[0, some], [some, versions]] as const) {
    yield* run.tell(`${to} versions`)
    yield* writeVersions(fixture, from, to)
    yield* fixture.sql`vacuum analyze access_versions`
    seen.push(...(yield* looks(fixture, to)))
  }
  const grown = seen.filter(({ blocks, hour, versions: of }) =>
    of === versions && blocks > most * seen.find((look) => look.hour === hour && look.versions === some)!.blocks
  )
  if (grown.length > 0) {
    return yield* failed(`a page of the past reads more beside more versions: ${JSON.stringify(seen)}`)
  }
  return { rounds, seen }
})

export const decisionLog: Claim = {
  name: "log",
  title: "The transparency log: the cost of a decision's leaf, and Access at a past moment",
  measure: (run) =>
    Effect.gen(function* () {
      const { rounds, seen } = yield* measured(run)
      const row = (what: "propose" | "approve") => {
        const [leaf, bare] = [rounds.map((one) => one.with[what]), rounds.map((one) => one.without[what])]
        const ratio = median(rounds.map((one) => one.with[what] / one.without[what]))
        return [`${what} a review`, rounded(median(leaf), 2), rounded(median(bare), 2), rounded(ratio, 3)]
      }
      return {
        tables: [
          {
            title: "Milliseconds a decision, medians",
            columns: ["", "with its leaf", "without", "ratio"],
            rows: [row("propose"), row("approve")],
          },
          {
            title: `A page of ${page} of an institution's Access at a past moment`,
            columns: ["versions", "at version", "rows", "ms", "blocks"],
            rows: seen.map(({ blocks, hour, millis, rows, versions }) => [
              ...[versions, hour, rows, rounded(millis, 2), blocks],
            ]),
          },
        ],
        notes: [
          `Decisions one after the other in one process, ${inTurn} with leaves and ${inTurn} without in turn, on one database.`,
          `${versionsEach} versions an Access, of ${institutionsOfVersions} institutions; one statement a page; blocks from the cache or not.`,
        ],
        raw: { rounds, seen },
      }
    }).pipe(
      Effect.provideService(References.TracerEnabled, false),
      Effect.mapError(failed),
    ),
}
