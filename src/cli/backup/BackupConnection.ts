/** A session of PostgreSQL with COPY, which the program's own driver does not have. */
import { Effect, Redacted } from "effect"
import type { Readable } from "node:stream"
import pg from "pg"
import { CliFault } from "../CliFault.ts"
import { addressOf } from "../../ServerAddress.ts"
import { reasonOf } from "../Reason.ts"
import { reading, writing } from "./CopyFormat.ts"

export interface BackupConnection {
  readonly rows: <Row extends object>(text: string, values?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>
  /** The rows of a query, in COPY's text format. */
  readonly read: (query: string) => Readable
  /** Puts rows in COPY's text format into a table's columns. */
  readonly write: (table: string, columns: ReadonlyArray<string>, rows: AsyncIterable<Uint8Array>) => Promise<void>
}

const quoted = (name: string) => `"${name}"`
export const listOf = (columns: ReadonlyArray<string>) => columns.map(quoted).join(", ")

const open = async (url: Redacted.Redacted) => {
  const client = new pg.Client({
    connectionString: Redacted.value(url),
    application_name: "bailiwick backup",
    connectionTimeoutMillis: 10_000,
  })
  // A lost connection fails its statement, too.
  client.on("error", () => {})
  await client.connect()
  // No limit on statements: a large table, or a slow reader of the backup, may take long.
  await client.query(
    "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set lock_timeout = '30s'; " +
      "set timezone = 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'postgres'; set extra_float_digits = 3; " +
      "set bytea_output = 'hex'",
  )
  return client
}

/** Opens a session, which is closed with the scope. */
export const connect = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => open(url),
      catch: (error) => new CliFault({ message: `cannot use the database at ${addressOf(url)}: ${reasonOf(error)}` }),
    }),
    (client) => Effect.promise(() => client.end().catch(() => {})),
  ).pipe(Effect.map((client): BackupConnection => ({
    rows: async <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
      (await client.query(text, [...values])).rows as ReadonlyArray<Row>,
    read: (text) => {
      const { query, rows } = reading(`copy (${text}) to stdout`)
      client.query(query)
      return rows
    },
    write: (table, columns, rows) => {
      const { done, query } = writing(`copy ${quoted(table)} (${listOf(columns)}) from stdin`, rows)
      client.query(query)
      return done
    },
  })))
