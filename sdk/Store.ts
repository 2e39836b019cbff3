/**
 * Where the product keeps what it was told: tables in its own database, changed in its own transactions. What is written
 * is said once, as statements that PostgreSQL and SQLite both understand; a store only runs them.
 */

export type Value = string | number | null

export interface Row {
  readonly [column: string]: unknown
}

/** One statement; `$1` is the first value. */
export interface Statement {
  readonly text: string
  readonly values: ReadonlyArray<Value>
  /** The same as a statement of one row, to be run for each of several: what a store without round trips may do instead. */
  readonly each?: OneByOne
}

export interface OneByOne {
  readonly text: string
  readonly rows: ReadonlyArray<ReadonlyArray<Value>>
}

/** Statements one after the other: each is given out, and gets its rows back. */
export type Work<A> = Generator<Statement, A, ReadonlyArray<Row>>

/** Runs statements; `Tx` is what the product's own statements of the same transaction run on. */
export interface Store<Tx> {
  /**
   * Runs work, and then `alongside`, in one transaction. Resolves after the commit; rejects, with nothing done, where
   * either throws.
   */
  readonly transact: <A>(
    work: () => Work<A>,
    alongside?: (done: A, tx: Tx) => void | Promise<void>,
  ) => Promise<A>
  /** Runs one statement outside any transaction. */
  readonly read: <A>(work: () => Work<A>) => Promise<A>
  /** Makes the tables, where they are not there yet. */
  readonly prepare: () => Promise<void>
}

/** One statement as work. */
export function* ask(
  text: string,
  ...values: ReadonlyArray<Value>
): Work<ReadonlyArray<Row>> {
  return yield { text, values }
}

const rowsAtOnce = 200

const marks = (columns: number, nth: number) =>
  `(${Array.from({ length: columns }, (_, i) => `$${nth * columns + i + 1}`)})`

/** Made when it is asked for: who runs `each` needs no statement of many rows. */
class Insertion implements Statement {
  readonly before: string
  readonly after: string
  readonly columns: number
  readonly rows: ReadonlyArray<ReadonlyArray<Value>>

  constructor(into: string, columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<Value>>, after: string) {
    this.before = `insert into ${into} (${columns}) values`
    this.after = after
    this.columns = columns.length
    this.rows = rows
  }

  get text(): string {
    return `${this.before} ${this.rows.map((_, nth) => marks(this.columns, nth))} ${this.after}`
  }

  get values(): ReadonlyArray<Value> {
    return this.rows.flat()
  }

  get each(): OneByOne {
    return { text: `${this.before} ${marks(this.columns, 0)} ${this.after}`, rows: this.rows }
  }
}

/** Inserts rows, in their order; `after` says what becomes of conflicts, and what is given back. */
export function* insert(
  into: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Value>>,
  after: string,
): Work<ReadonlyArray<Row>> {
  const given: Array<Row> = []
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    given.push(...(yield new Insertion(into, columns, rows.slice(at, at + rowsAtOnce), after)))
  }
  return given
}

const tables = [
  // `position`, `cursor` and `chain_head` are those of the last event that was applied, or of the snapshot.
  `create table bailiwick_consumer (
    project_id text primary key,
    epoch bigint,
    position bigint,
    cursor text,
    chain_head text,
    is_open integer not null,
    closed_because text
  )`,
  `create table bailiwick_facts (
    project_id text not null,
    about text not null,
    id text not null,
    issuer text,
    subject text,
    other_issuer text,
    other_subject text,
    linked integer not null,
    value text not null,
    primary key (project_id, about, id)
  )`,
  // Facts of a snapshot that comes in parts, until all of them are there.
  `create table bailiwick_staged (
    project_id text not null,
    snapshot text not null,
    about text not null,
    id text not null,
    issuer text,
    subject text,
    other_issuer text,
    other_subject text,
    linked integer not null,
    value text not null,
    primary key (project_id, snapshot, about, id)
  )`,
  `create index bailiwick_facts_person on bailiwick_facts (project_id, issuer, subject)`,
  `create index bailiwick_facts_other on bailiwick_facts (project_id, other_issuer, other_subject)`,
  `create table bailiwick_pins (
    project_id text not null,
    kid text not null,
    primary key (project_id, kid)
  )`,
  `create table bailiwick_seen (
    project_id text not null,
    jti text not null,
    position bigint not null,
    primary key (project_id, jti)
  )`,
  `create index bailiwick_seen_position on bailiwick_seen (project_id, position)`,
]

const view = (name: string, about: string, columns: string, json: string) =>
  `create view ${name} as select project_id, issuer, subject, ${columns.replaceAll("value", json)}
    from bailiwick_facts where about = '${about}'`

const views = (json: string) => [
  view("bailiwick_accesses", "access", "id as access_id, value ->> 'role' as role", json),
  view("bailiwick_people", "people", "value ->> 'status' as status", json),
  view("bailiwick_session_floors", "sessions_floor", "cast(value ->> 'not_before' as bigint) as not_before", json),
]

/**
 * Makes tables, and views for a product's own queries; `json` is how the database reads the column `value` as JSON, and
 * `exists` gives a row where there is a relation of that name. What is there already is not touched: PostgreSQL would lock
 * a table for an index that it has, and another process of the product may be in the middle of it.
 */
export function* schema(json: string, exists: (relation: string) => Statement): Work<void> {
  for (const text of [...tables, ...views(json)]) {
    const [relation] = /\bbailiwick_\w+/.exec(text)!
    if ((yield exists(relation)).length === 0) yield { text, values: [] }
  }
}
