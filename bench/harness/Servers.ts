/**
 * The real PostgreSQL (fsync on, the settings that users get) and nats-server, started once a claim; each measurement
 * takes a database and a broker account of its own from them, so no round sees another one's rows.
 */
import { PgClient } from "@effect/sql-pg"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect, Redacted, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { keepStreams, managerOf } from "../../services/platform/messaging/Bus/StreamProvisioning.ts"
import { streamNames } from "../../schemas/bus/BusStreams.ts"
import { Database } from "../../services/platform/database/Database.ts"
import * as EmbeddedNats from "../../src/embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import * as Home from "../../src/embedded/Home.ts"
import { app } from "../../src/embedded/PostgresData.ts"
import { migrate } from "../../src/Migrations.ts"
import { BenchError } from "./Child.ts"
import { rounded, type Table } from "./Figures.ts"
import { cpuMillis } from "./Cpu.ts"

const accounts = 128

export interface Fixture {
  readonly databaseUrl: string
  readonly ownerUrl: string
  readonly natsUrl: string
  /** As the owner. */
  readonly sql: PgClient.PgClient
  /**
   * Counts statements of connections made from now on; costs a few percent, so it is not used where time is measured.
   */
  readonly count: Effect.Effect<void, BenchError>
  /** Since the servers started; the statements are those of the program's role that were counted. */
  readonly used: Effect.Effect<DatabaseUse, BenchError>
  /** Blocks that counted statements of all roles touched so far, found in memory or read. */
  readonly blocks: Effect.Effect<number, BenchError>
}

export interface DatabaseUse {
  /** With BEGIN and COMMIT. */
  readonly statements: number
  readonly walBytes: number
  /** Of the write-ahead log. */
  readonly fsyncs: number
}

export interface Servers {
  /** A folder of this run. */
  readonly home: string
  readonly versions: { readonly postgres: string; readonly nats: string }
  /** A new database, a copy of `template` or empty, and a new broker account; deleted when the scope closes. */
  readonly fixture: (template?: string) => Effect.Effect<Fixture, BenchError, Scope.Scope>
  /** A migrated database to copy from, filled by `fill`. */
  readonly template: (name: string, fill: Effect.Effect<unknown, unknown, Database>) => Effect.Effect<void, BenchError>
  /** Milliseconds of CPU of PostgreSQL and of nats-server so far. */
  readonly cpu: () => { readonly postgres: number; readonly nats: number }
}

/** The cost of each of `count` operations between two readings. */
export const costOf = (before: DatabaseUse, after: DatabaseUse, count: number): DatabaseUse => ({
  statements: (after.statements - before.statements) / count,
  walBytes: (after.walBytes - before.walBytes) / count,
  fsyncs: (after.fsyncs - before.fsyncs) / count,
})

export const costTable = (what: string, uses: ReadonlyArray<readonly [string, DatabaseUse]>): Table => ({
  title: `What ${what} takes of PostgreSQL`,
  columns: ["", "statements", "bytes of WAL", "fsyncs of it"],
  rows: uses.map(([name, { fsyncs, statements, walBytes }]) => [
    name,
    rounded(statements, statements < 1 ? 4 : 1),
    Math.round(walBytes),
    rounded(fsyncs, fsyncs < 1 ? 4 : 2),
  ]),
})

const failed = (cause: unknown) => new BenchError({ message: `the servers: ${String(cause)}` })

const clientOf = (url: string, maxConnections: number) =>
  PgClient.make({ url: Redacted.make(url), maxConnections }).pipe(Effect.provide(Reactivity.layer))

/** A connection to the broker that closes with the scope. */
export const broker = (natsUrl: string) =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const url = new URL(natsUrl)
      return connect({ servers: url.host, user: url.username, pass: url.password })
    }),
    (nc: NatsConnection) => Effect.promise(() => nc.close()),
  )

export const start = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-bench-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  )
  const home = yield* Home.open(folder)
  const password = randomBytes(16).toString("hex")
  const users = Array.from({ length: accounts }, (_, n) => ({ user: `b${n}`, password }))
  const [postgres, nats] = yield* Effect.all([
    EmbeddedPostgres.start({
      home,
      settings: { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "none" },
    }),
    EmbeddedNats.start({ home, accounts: users }),
  ], { concurrency: 2 })
  const at = (url: Redacted.Redacted, name: string) => {
    const named = new URL(Redacted.value(url))
    named.pathname = `/${name}`
    return named.href
  }
  const maintenance = yield* clientOf(Redacted.value(postgres.ownerUrl), 1)
  yield* maintenance`create extension pg_stat_statements`
  let taken = 0

  const use = (name: string) =>
    Effect.map(
      maintenance<{ statements: number; walBytes: number; fsyncs: number }>`
        select (select coalesce(sum(s.calls), 0)::int from pg_stat_statements s
            join pg_database d on d.oid = s.dbid and d.datname = ${name}
            join pg_roles r on r.oid = s.userid and r.rolname = ${app}) as statements,
          (select wal_bytes::float8 from pg_stat_wal) as "walBytes",
          (select sum(fsyncs)::int from pg_stat_io where object = 'wal') as fsyncs`,
      ([row]) => row!,
    ).pipe(
      // A backend reports its figures within a second of becoming idle.
      Effect.delay("1500 millis"),
      Effect.mapError(failed),
    )

  const blocksOf = (name: string) =>
    Effect.map(
      maintenance<{ blocks: number }>`
        select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as blocks
        from pg_stat_statements s join pg_database d on d.oid = s.dbid and d.datname = ${name}`,
      ([row]) => row!.blocks,
    ).pipe(Effect.mapError(failed))

  const fixture: Servers["fixture"] = Effect.fnUntraced(function* (template) {
    const n = taken++
    const name = `bench_${n}`
    const user = users[n]
    if (user === undefined) return yield* new BenchError({ message: "every broker account of this run is used" })
    yield* Effect.acquireRelease(
      (template === undefined
        ? maintenance`create database ${maintenance(name)}`
        : maintenance`create database ${maintenance(name)} template ${maintenance(template)}`).pipe(
          Effect.mapError(failed),
        ),
      () => maintenance`drop database if exists ${maintenance(name)} with (force)`.pipe(Effect.orDie),
    )
    const natsUrl = `nats://${user.user}:${user.password}@127.0.0.1:${nats.port}`
    const nc = yield* broker(natsUrl)
    yield* Effect.acquireRelease(
      Effect.tryPromise({ try: () => keepStreams(nc), catch: failed }),
      () =>
        Effect.promise(async () => {
          const { streams } = await managerOf(nc)
          for (const name of streamNames) await streams.delete(name)
        }),
    )
    yield* maintenance`checkpoint`.pipe(Effect.mapError(failed))
    const ownerUrl = at(postgres.ownerUrl, name)
    const sql = yield* clientOf(ownerUrl, 2).pipe(Effect.mapError(failed))
    const count = maintenance`alter database ${maintenance(name)} set pg_stat_statements.track = 'top'`.pipe(
      Effect.mapError(failed),
    )
    return {
      databaseUrl: at(postgres.appUrl, name),
      ownerUrl,
      natsUrl,
      sql,
      count,
      used: use(name),
      blocks: blocksOf(name),
    }
  })

  const template: Servers["template"] = (name, fill) =>
    Effect.gen(function* () {
      yield* maintenance`create database ${maintenance(name)}`
      yield* Effect.andThen(migrate, fill).pipe(Effect.provide(Database.layer({
        url: Redacted.make(at(postgres.appUrl, name)),
        ownerUrl: Redacted.make(at(postgres.ownerUrl, name)),
        maxConnections: 2,
      })))
    }).pipe(Effect.mapError(failed))

  const [version] = yield* maintenance<{ v: string }>`select current_setting('server_version') as v`
  const natsVersion = yield* broker(`nats://${users[0]!.user}:${password}@127.0.0.1:${nats.port}`).pipe(
    Effect.map((nc) => nc.info?.version ?? ""),
    Effect.scoped,
  )
  return {
    home,
    versions: { postgres: version!.v, nats: natsVersion },
    fixture,
    template,
    cpu: () => ({ postgres: cpuMillis(postgres.pid, true) ?? 0, nats: cpuMillis(nats.pid) ?? 0 }),
  } satisfies Servers
}).pipe(Effect.mapError(failed))
