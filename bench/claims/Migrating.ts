/**
 * Migrations on large tables under load: every migration in steps, one after another, on ten million deliveries, five million audit
 * records, a million Accesses and as many people's sessions, while a probe takes the lock of a write on each of the tables every few
 * milliseconds. The longest wait of a probe is the longest that a write of the program would have stood still.
 *
 * `--rows` is the number of deliveries where it is not ten million; the others are a half and a tenth of it.
 */
import { PgClient } from "@effect/sql-pg"
import { Cause, Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { watchLocks } from "../../src/cli/upgrade/LockWatch.ts"
import { apply, migrations } from "../../src/Migrations.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { BenchError } from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import type { Fixture } from "../harness/Servers.ts"
import { audit } from "./Growth/AuditGrowth.ts"
import { deliveries } from "./Growth/DeliveryGrowth.ts"
import { people } from "./Growth/PeopleGrowth.ts"

/** The oldest schema on which the services of this version write their rows. */
const from = 86

const probed = [
  ...["deliveries", "attempts", "delivery_queue", "events", "audit_records", "sessions", "idempotency_receipts"],
  ...["accounts", "webhooks", "people", "access"],
]

const failed = (cause: unknown) => new BenchError({ message: `migrations: ${Cause.pretty(Cause.fail(cause))}` })

/** Takes a write's lock of each table again and again; `stalls` gets the longest wait for it, in milliseconds. */
const probes = (url: string, stalls: Map<string, number>) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({ url: Redacted.make(url), maxConnections: probed.length })
    const once = (table: string) =>
      Effect.gen(function* () {
        const began = performance.now()
        yield* sql`lock table ${sql(table)} in row exclusive mode`
        stalls.set(table, Math.max(stalls.get(table) ?? 0, performance.now() - began))
      }).pipe(sql.withTransaction, Effect.andThen(Effect.sleep("5 millis")))
    yield* Effect.forEach(probed, (table) => Effect.forever(once(table)), { concurrency: "unbounded" })
  }).pipe(Effect.provide(Reactivity.layer), Effect.scoped)

/** The program's own role has no rights on a schema that is not migrated to its end. `patience` times its limits of time. */
const asOwner = ({ ownerUrl }: Fixture, patience = 1) => {
  const url = Redacted.make(ownerUrl)
  return Database.layer({ url, ownerUrl: url, maxConnections: 2, patience })
}

/** Accesses of a hundred projects of one institution, ten a person. */
const accesses = {
  name: "access",
  fill: Effect.fnUntraced(function* (rows: number) {
    const { owner } = yield* Database
    yield* owner`insert into institutions (id, updated_at, name, status) values ('grown', to_timestamp(0), 'Grown', 'active')`
    yield* owner`
      insert into projects (id, updated_at, institution_id, name, website, environment, connector_kind, state)
      select 'grown-' || n, to_timestamp(0), 'grown', 'Grown ' || n, 'https://grown-' || n || '.example', 'production',
        'service_connector', 'launched' from generate_series(0, 99) n`
    yield* owner`
      insert into access (id, updated_at, created_at, institution_id, project_id, person_id, role, state, access_version)
      select 'access-' || n, to_timestamp(0), to_timestamp(0), 'grown', 'grown-' || n % 100, 'person-' || n / 10, 'user',
        'active', 1 from generate_series(0, ${rows - 1}::bigint) n`
    yield* owner`vacuum analyze access`
  }),
}

/** The rows are written by a few statements, which may take many minutes. */
const filled = (run: Run, fixture: Fixture, rows: number) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    yield* apply(owner, migrations.filter(([id]) => id <= from))
    for (const [area, share] of [[deliveries, 1], [audit, 2], [people, 10], [accesses, 10]] as const) {
      yield* run.tell(`writing ${Math.ceil(rows / share)} rows of ${area.name}`)
      yield* area.fill(Math.ceil(rows / share), run)
    }
  }).pipe(Effect.provide(asOwner(fixture, 240)))

interface Migrated {
  readonly name: string
  readonly millis: number
  readonly lock: string
  readonly stall: string
}

const longest = (stalls: ReadonlyMap<string, number>) => {
  const [first] = [...stalls].sort(([, a], [, b]) => b - a)
  return first === undefined ? "" : `${first[1].toFixed(0)} (${first[0]})`
}

const measured = (run: Run, rows: number) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture()
    const began = performance.now()
    yield* filled(run, fixture, rows)
    const seconds = Math.round((performance.now() - began) / 1_000)
    return yield* Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const stalls = new Map<string, number>()
      yield* Effect.forkScoped(probes(fixture.ownerUrl, stalls))
      yield* Effect.sleep("2 seconds")
      const beside = longest(stalls)
      const done: Array<Migrated> = []
      for (const [id, name] of migrations.filter(([id]) => id > from)) {
        yield* run.tell(`migration ${id}`)
        stalls.clear()
        const seen = yield* watchLocks(sql, probed, apply(owner, migrations.filter((one) => one[0] <= id)))
        const [lock] = seen.locks
        done.push({
          name: `${String(id).padStart(4, "0")}_${name}`,
          millis: seen.millis,
          lock: lock === undefined ? "" : `${lock.millis} (${lock.mode}, ${lock.table})`,
          stall: longest(stalls),
        })
      }
      return { done, beside, seconds }
    }).pipe(Effect.provide(asOwner(fixture)))
  }).pipe(Effect.scoped, Effect.mapError(failed))

export const migrating: Claim = {
  name: "migrations",
  title: "Migrations on large tables, under load",
  once: true,
  takes:
    "--rows=N deliveries, half as many audit records, a tenth as many Accesses and sessions (10,000,000, with --quick " +
    "100,000); 100,000 took 42 s beside other work, so ten million take a quarter of an hour and more, and 20 GB of disk",
  measure: (run) =>
    Effect.gen(function* () {
      const rows = run.rows ?? (run.quick ? 100_000 : 10_000_000)
      const { beside, done, seconds } = yield* measured(run, rows)
      return {
        tables: [{
          title: `From schema ${from}, with ${rows} deliveries, ${Math.ceil(rows / 2)} audit records and ${
            Math.ceil(rows / 10)
          } Accesses and sessions`,
          columns: ["", "ms", "longest lock against writes, ms", "longest wait of a write, ms"],
          rows: done.map(({ lock, millis, name, stall }) => [name, millis, lock, stall]),
        }],
        notes: [
          `The rows were written in ${seconds} s.`,
          "Eleven sessions take the lock of a write, one for each large table and those that all commands read, every 5 ms.",
          `Without a migration their longest wait within two seconds was ${beside} ms.`,
          "A lock is held as long as it was seen, looked at every 5 ms.",
        ],
        raw: { done, rows, seconds },
      }
    }),
}
