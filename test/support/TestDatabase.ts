/**
 * A database for each test file: a copy of one that was migrated once in this run. The program's role is not the owner,
 * as in production, so a missing grant fails a test.
 *
 * PostgreSQL copies no database that has connections; one advisory lock orders the migration and the copies.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { randomBytes } from "node:crypto"
import { inject } from "vitest"
import { Database } from "../../services/platform/database/Database.ts"
import { Ids } from "../../services/platform/Ids.ts"
import { migrate } from "../../src/Migrations.ts"
import { testRsaKeys } from "./TestRsaKeys.ts"

const template = "bailiwick_template"
const lock = 6_241_987

const urlsOf = (name: string) => {
  const at = (address: string) => {
    const url = new URL(address)
    url.pathname = `/${name}`
    return Redacted.make(url.href)
  }
  return { url: at(inject("postgresAppUrl")), ownerUrl: at(inject("postgresOwnerUrl")) }
}

/**
 * The pools connect by the real clock: a connection that a pool opens while a test moves the virtual clock would
 * otherwise time out.
 */
const realClock = Layer.succeed(Clock.Clock, Context.get(Context.empty(), Clock.Clock))

/** Statement and lock timeouts are longer than a request's, since tests share their cores. */
const patience = 10

const open = (name: string) =>
  Database.layer({ ...urlsOf(name), maxConnections: 8, patience }).pipe(Layer.provide(realClock))

/** One connection, so that a lock taken by one statement is held for the next. */
const maintenance = Effect.suspend(() =>
  PgClient.make({ url: Redacted.make(inject("postgresOwnerUrl")), maxConnections: 1 })
).pipe(Effect.provide(Reactivity.layer))

const copy = Effect.fnUntraced(function* (name: string) {
  const sql = yield* maintenance
  yield* sql`select pg_advisory_lock(${lock})`
  const [migrated] = yield* sql`select from pg_database where datname = ${template}`
  if (migrated === undefined) {
    const unfinished = `${template}_new`
    yield* sql`drop database if exists ${sql(unfinished)} with (force)`
    yield* sql`create database ${sql(unfinished)}`
    yield* migrate.pipe(Effect.provide(open(unfinished)))
    yield* sql`alter database ${sql(unfinished)} rename to ${sql(template)}`
  }
  // Copying through the WAL, the default, took twice the time.
  yield* sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`
}, Effect.scoped)

const drop = (name: string) =>
  maintenance.pipe(
    Effect.flatMap((sql) => sql`drop database if exists ${sql(name)} with (force)`),
    Effect.scoped,
    Effect.orDie,
  )

export class TestDatabase extends Context.Service<TestDatabase, {
  readonly name: string
  readonly url: Redacted.Redacted
  readonly ownerUrl: Redacted.Redacted
}>()("bailiwick/test/support/TestDatabase") {
  /** A migrated database of its own, dropped with its connections when the scope closes. */
  static readonly make = Effect.gen(function* () {
    const name = `test_${randomBytes(8).toString("hex")}`
    yield* Effect.acquireRelease(Effect.orDie(copy(name)), () => drop(name))
    return TestDatabase.of({ name, ...urlsOf(name) })
  })

  /**
   * Its addresses, for programs that a test starts, and the Database service over it. Ids are made by a generator of
   * its own, since another file's virtual clock may have been ahead in the same process; RSA keys are those of the run.
   */
  static readonly layer = Layer.unwrap(
    Effect.map(
      TestDatabase.make,
      (made) =>
        Layer.mergeAll(Layer.succeed(TestDatabase, made), open(made.name).pipe(Layer.orDie), Ids.own, testRsaKeys),
    ),
  )
}
