/**
 * Rows that a transaction adds and does not look at again (messages, mails, audit, timers, notices): gathered while it
 * decides, and written by one statement before it commits. What a statement costs is mostly its way there and back.
 *
 * `gathered` stands inside the transaction and around all that it does, with no savepoint between that may be rolled back
 * and survived: what was gathered under one would be written all the same. Nobody sees the rows before the end, the
 * transaction itself neither. Without it around, `write` writes at once.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Context, Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

/** One data-modifying statement, by a name that others of its kind may refer to; none sees what another did but so. */
export interface Part {
  readonly name: string
  readonly statement: Statement.Fragment
}

export interface Kind<A> {
  /** One of its own: all items of a name are written together. */
  readonly name: string
  /** What writes the items. Of equal shape where it can be: a statement's text is planned once. */
  readonly parts: (items: Array.NonEmptyReadonlyArray<A>) => Array.NonEmptyReadonlyArray<Part>
}

interface Heap {
  readonly kind: Kind<unknown>
  readonly items: globalThis.Array<unknown>
}

interface Gathering {
  readonly heaps: Map<string, Heap>
  /** Where there is no transaction that would keep it: what is to run after the commit. */
  readonly after: globalThis.Array<Effect.Effect<void>> | null
}

class Current extends Context.Reference<Gathering | null>("bailiwick/services/platform/database/Gathered/Current", {
  defaultValue: () => null,
}) {}

// In one order, so that the same heaps are the same text.
const partsOf = (heaps: Map<string, Heap>) =>
  [...heaps.values()].sort((a, b) => a.kind.name < b.kind.name ? -1 : 1)
    .flatMap(({ items, kind }) => Array.isArrayNonEmpty(items) ? kind.parts(items) : [])

/** Runs statements as one. */
export const writeParts = (
  sql: PgClient.PgClient,
  parts: ReadonlyArray<Part>,
): Effect.Effect<void, SqlError.SqlError> => {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return Effect.asVoid(sql`${only.statement}`)
  const named = parts.map(({ name, statement }) => sql`${sql(name)} as (${statement})`)
  return Effect.asVoid(sql`with recursive ${sql.join(", ", false)(named)} select 1 as done`)
}

/** Runs `effect`, in a transaction that is open, and then writes what it gathered, by one statement. */
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

/** What an effect gathered, for a statement that writes it and more (FencedWrite.ts). */
export interface Collected<A> {
  readonly result: A
  readonly parts: ReadonlyArray<Part>
  /** What is to run once that statement has committed. */
  readonly after: Effect.Effect<void>
}

/** Runs `effect`, in no transaction, and gives what it gathered instead of writing it. */
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

/** Runs `effect` after the commit of what is being gathered, or of the transaction; at once where there is neither. */
export const afterCommit = (sql: PgClient.PgClient, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(
    Current,
    (gathering) => gathering?.after ? Effect.sync(() => void gathering.after!.push(effect)) : sql.afterCommit(effect),
  )

/** Writes items: at the end of what is gathered around it, else at once. */
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
 * Rows of a table, as JSON has them: one parameter, however many there are. A parameter for each field costs more than
 * the rows themselves. `columns` are the types of those that are written.
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
