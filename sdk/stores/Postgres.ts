/**
 * A store in PostgreSQL, over the product's own client: it needs one function that runs a statement and one that runs
 * several in a transaction.
 */
import { type Row, schema, type Store, type Value, type Work } from "../Store.ts"

/** Runs one statement with `$1`-style values and gives its rows. */
export type Query = (
  text: string,
  values: ReadonlyArray<Value>,
) => Promise<ReadonlyArray<Row>>

export interface PostgresAccess {
  readonly query: Query
  /** Runs `work` on one connection between BEGIN and COMMIT; with ROLLBACK if it rejects. */
  readonly transaction: <A>(work: (query: Query) => Promise<A>) => Promise<A>
}

const drive = async <A>(work: Work<A>, query: Query): Promise<A> => {
  let step = work.next()
  while (!step.done) {
    step = work.next(await query(step.value.text, step.value.values))
  }
  return step.value
}

export const postgresStore = (
  { query, transaction }: PostgresAccess,
): Store<Query> => ({
  transact: (work, alongside) =>
    transaction(async (inside) => {
      const done = await drive(work(), inside)
      await alongside?.(done, inside)
      return done
    }),
  read: (work) => drive(work(), query),
  prepare: () =>
    transaction(async (inside) => {
      await inside("select pg_advisory_xact_lock(1650550132)", [])
      await drive(
        schema("(value::json)", (relation) => ({
          text: "select 1 where to_regclass($1) is not null",
          values: [relation],
        })),
        inside,
      )
    }),
})

interface PgClient {
  readonly query: (
    text: string,
    values?: Array<Value>,
  ) => Promise<{ readonly rows: ReadonlyArray<Row> }>
}

/** Access by a `Pool` of the package `pg`. */
export const overPg = (
  pool: PgClient & {
    readonly connect: () => Promise<
      PgClient & { readonly release: (broken?: boolean) => void }
    >
  },
): PostgresAccess => {
  const on = (client: PgClient): Query => async (text, values) => (await client.query(text, [...values])).rows
  return {
    query: on(pool),
    transaction: async (work) => {
      const client = await pool.connect()
      try {
        await client.query("begin")
        const done = await work(on(client))
        await client.query("commit")
        client.release()
        return done
      } catch (error) {
        const rolledBack = await client.query("rollback").then(
          () => true,
          () => false,
        )
        client.release(!rolledBack)
        throw error
      }
    },
  }
}

interface PostgresJs {
  readonly unsafe: (
    text: string,
    values?: Array<Value>,
  ) => PromiseLike<ReadonlyArray<Row>>
}

/** Access by a client of the package `postgres`. */
export const overPostgresJs = (
  sql: PostgresJs & {
    readonly begin: (
      work: (sql: PostgresJs) => Promise<unknown>,
    ) => Promise<unknown>
  },
): PostgresAccess => {
  const on = (client: PostgresJs): Query => async (text, values) => await client.unsafe(text, [...values])
  return {
    query: on(sql),
    transaction: async <A>(work: (query: Query) => Promise<A>) => await sql.begin((inside) => work(on(inside))) as A,
  }
}
