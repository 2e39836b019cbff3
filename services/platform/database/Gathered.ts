/**
 * Collects rows that a transaction adds and does not read again (messages, mails, audit, timers, notices), and writes
 * them by one statement before the commit: the cost of a statement is mostly its round trip.
 *
 * `gathered` is inside the transaction and around everything that it does. No savepoint between the two may be rolled
 * back and survived: rows gathered under it would be written all the same. The rows are not visible before the end, not
 * even to the transaction itself. Without `gathered` around it, `write` writes at once.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

/** One data-modifying statement with a name; only by its name another part can see the rows that it returns. */
export interface Part {
  readonly name: string
  readonly statement: Statement.Fragment
}

export interface Kind<A> {
  /** A unique name: all items of a name are written together. */
  readonly name: string
  /** The statements that write the items. Their text should not depend on the items: each text is planned once. */
  readonly parts: (items: Array.NonEmptyReadonlyArray<A>) => Array.NonEmptyReadonlyArray<Part>
}

interface Heap {
  readonly kind: Kind<unknown>
  readonly items: globalThis.Array<unknown>
}

interface Gathering {
  readonly heaps: Map<string, Heap>
  /** Effects to run after the commit; null in a transaction, which keeps them itself. */
  readonly after: globalThis.Array<Effect.Effect<void>> | null
}

class Current extends Context.Reference<Gathering | null>("bailiwick/services/platform/database/Gathered/Current", {
  defaultValue: () => null,
}) {}

// Sorted by name, so that the same kinds make the same text.
const partsOf = (heaps: Map<string, Heap>) =>
  [...heaps.values()].sort((a, b) => a.kind.name < b.kind.name ? -1 : 1)
    .flatMap(({ items, kind }) => Array.isArrayNonEmpty(items) ? kind.parts(items) : [])

/** Runs several statements as one. */
export const writeParts = (
  sql: PgClient.PgClient,
  parts: ReadonlyArray<Part>,
): Effect.Effect<void, SqlError.SqlError> => {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return Effect.asVoid(sql`${only.statement}`)
  const named = parts.map(({ name, statement }) => sql`${sql(name)} as (${statement})`)
  return Effect.asVoid(sql`with recursive ${sql.join(", ", false)(named)} select 1 as done`)
}

/** Runs `effect`, in an open transaction, and then writes the gathered rows by one statement. */
export const gathered = <A, E, R>(
  sql: PgClient.PgClient,
  effect: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.suspend(() => {
    const heaps = new Map<string, Heap>()
    return Effect.tap(Effect.provideService(effect, Current, { heaps, after: null }), () => {
      const parts = partsOf(heaps)
      return Array.isReadonlyArrayNonEmpty(parts) ? writeParts(sql, parts) : Effect.void
    })
  })

/** The gathered rows of an effect, for a statement that writes these and more (FencedWrite.ts). */
export interface Collected<A> {
  readonly result: A
  readonly parts: ReadonlyArray<Part>
  /** The effect to run once that statement has committed. */
  readonly after: Effect.Effect<void>
}

/** Runs `effect`, outside any transaction, and returns the gathered rows instead of writing them. */
export const collected = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Collected<A>, E, R> =>
  Effect.suspend(() => {
    const heaps = new Map<string, Heap>()
    const after: globalThis.Array<Effect.Effect<void>> = []
    return Effect.map(Effect.provideService(effect, Current, { heaps, after }), (result) => ({
      result,
      parts: partsOf(heaps),
      after: Effect.all(after, { discard: true }),
    }))
  })

/** Runs `effect` after the commit of the fenced write or of the transaction; at once where there is neither. */
export const afterCommit = (sql: PgClient.PgClient, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(
    Current,
    (gathering) => gathering?.after ? Effect.sync(() => void gathering.after!.push(effect)) : sql.afterCommit(effect),
  )

/** Writes items: together with the other gathered rows, or at once where nothing gathers. */
export const write = <A>(
  sql: PgClient.PgClient,
  kind: Kind<A>,
  items: ReadonlyArray<A>,
): Effect.Effect<void, SqlError.SqlError> =>
  Array.isReadonlyArrayNonEmpty(items)
    ? Effect.flatMap(Current, (gathering) => {
      if (gathering === null) return writeParts(sql, kind.parts(items))
      const heap = gathering.heaps.get(kind.name)
      if (heap === undefined) gathering.heaps.set(kind.name, { kind: kind as Kind<unknown>, items: [...items] })
      else heap.items.push(...items)
      return Effect.void
    })
    : Effect.void

/**
 * Inserts rows of a table, given as JSON: one parameter, however many rows there are. A parameter for each field costs
 * more than the rows themselves. `columns` are the types of the written columns.
 */
export const insertion = <const Columns extends Readonly<Record<string, string>>>(
  sql: PgClient.PgClient,
  table: string,
  columns: Columns,
): Kind<{ readonly [Column in keyof Columns]: unknown }> => {
  const names = sql.literal(Object.keys(columns).join(", "))
  const typed = sql.literal(Object.entries(columns).map(([name, type]) => `${name} ${type}`).join(", "))
  return {
    name: table,
    parts: (rows) => [{
      name: `new_${table}`,
      statement: sql`
        insert into ${sql(table)} (${names})
        select ${names} from json_to_recordset(${JSON.stringify(rows)}::json) r(${typed})`,
    }],
  }
}
