/**
 * A store in SQLite, by `node:sqlite` (Deno and Node). A transaction runs synchronously, so no other code of the
 * program can run statements on the same connection in between.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { type OneByOne, type Row, schema, type Statement, type Store, type Work } from "../Store.ts"

const promised = <A>(work: () => A): Promise<A> => new Promise((resolve) => resolve(work()))

const maxPrepared = 40

/**
 * A store over a database connection. `alongside` must be synchronous: after an `await` it would run after the commit.
 */
export const sqliteStore = (database: DatabaseSync): Store<DatabaseSync> => {
  const prepared = new Map<string, StatementSync>()

  /** The prepared statement for a text, cached. */
  const statement = (text: string): StatementSync => {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const made = database.prepare(text.replace(/\$(\d+)/g, "?$1"))
    if (prepared.size >= maxPrepared) prepared.delete(prepared.keys().next().value!)
    prepared.set(text, made)
    return made
  }

  // Row by row: a statement of 200 rows has 1,800 values, and binding each takes longer the more there are.
  const eachOf = ({ rows, text }: OneByOne): ReadonlyArray<Row> => {
    const one = statement(text)
    const returned: Array<Row> = []
    for (const values of rows) {
      const row = one.get(...values)
      if (row !== undefined) returned.push(row)
    }
    return returned
  }

  const run = (given: Statement): ReadonlyArray<Row> =>
    given.each === undefined ? statement(given.text).all(...given.values) as ReadonlyArray<Row> : eachOf(given.each)

  const drive = <A>(work: Work<A>): A => {
    let step = work.next()
    while (!step.done) step = work.next(run(step.value))
    return step.value
  }

  const transact = <A>(
    work: () => Work<A>,
    alongside?: (done: A, tx: DatabaseSync) => void | Promise<void>,
  ): A => {
    database.exec("begin immediate")
    try {
      const done = drive(work())
      if (alongside?.(done, database) instanceof Promise) {
        throw new TypeError("alongside must be synchronous with SQLite")
      }
      database.exec("commit")
      return done
    } catch (error) {
      if (database.isTransaction) database.exec("rollback")
      throw error
    }
  }

  const exists = (relation: string): Statement => ({
    text: "select 1 from sqlite_master where name = $1",
    values: [relation],
  })
  return {
    transact: (work, alongside) => promised(() => transact(work, alongside)),
    read: (work) => promised(() => drive(work())),
    prepare: () => promised(() => transact(() => schema("value", exists))),
  }
}
