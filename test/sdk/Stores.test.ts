/** Every store passes the same suite. */
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import postgres from "postgres"
import { overPg, overPostgresJs, postgresStore } from "../../sdk/stores/Postgres.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { it } from "vitest"
import { conformance } from "./StoreConformance.ts"

conformance<DatabaseSync>("SQLite", () => {
  const database = new DatabaseSync(":memory:")
  return Promise.resolve({
    store: sqliteStore(database),
    write: (tx, text) => tx.exec(text),
    end: () => Promise.resolve(database.close()),
  })
})

/** A database of its own, dropped at the end. */
const database = async () => {
  const scope = Effect.runSync(Scope.make())
  const built = await Effect.runPromise(Layer.buildWithScope(TestDatabase.layer, scope))
  return {
    url: Redacted.value(Context.get(built, TestDatabase).ownerUrl),
    drop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

const poolOf = (url: string) => {
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  // The database may be gone before the last connection has said goodbye.
  pool.on("error", () => {})
  return pool
}

conformance("PostgreSQL by pg", async () => {
  const { drop, url } = await database()
  const pool = poolOf(url)
  return {
    store: postgresStore(overPg(pool)),
    write: async (query, text) => void (await query(text, [])),
    end: async () => {
      await pool.end()
      await drop()
    },
  }
})

conformance("PostgreSQL by postgres.js", async () => {
  const { drop, url } = await database()
  const sql = postgres(url, { max: 3, onnotice: () => {} })
  return {
    store: postgresStore(overPostgresJs(sql)),
    write: async (query, text) => void (await query(text, [])),
    end: async () => {
      await sql.end()
      await drop()
    },
  }
})

it("prepare does not wait for another process's open transaction", async () => {
  const { drop, url } = await database()
  const pool = poolOf(url)
  const { prepare } = postgresStore(overPg(pool))
  await prepare()
  const other = await pool.connect()
  await other.query("begin")
  for (const table of ["seen (project_id, jti, position) values ('p', 'j', 1)", "pins values ('p', 'k')"]) {
    await other.query(`insert into bailiwick_${table}`)
  }
  await prepare()
  await other.query("rollback")
  other.release()
  await pool.end()
  await drop()
})
