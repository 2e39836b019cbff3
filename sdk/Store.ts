/**
 * The product's database: the kit's tables, changed in the product's own transactions. Each write is defined once, as
 * statements for both PostgreSQL and SQLite; a store only runs them.
 */

export type Value = string | number | null

export interface Row {
  readonly [column: string]: unknown
}

/** One statement; `$1` is the first value. */
export interface Statement {
  readonly text: string
  readonly values: ReadonlyArray<Value>
  /** The same insert one row at a time, for a store without round trips. */
  readonly each?: OneByOne
}

export interface OneByOne {
  readonly text: string
  readonly rows: ReadonlyArray<ReadonlyArray<Value>>
}

/** A sequence of statements: yields each one and receives its rows. */
export type Work<A> = Generator<Statement, A, ReadonlyArray<Row>>

/** Runs statements; `Tx` is the transaction's handle for the product's own statements. */
export interface Store<Tx> {
  /**
   * Runs `work`, then `alongside`, in one transaction. Resolves after the commit; if either throws, rolls back and
   * rejects.
   */
  readonly transact: <A>(
    work: () => Work<A>,
    alongside?: (done: A, tx: Tx) => void | Promise<void>,
  ) => Promise<A>
  /** Runs one statement outside any transaction. */
  readonly read: <A>(work: () => Work<A>) => Promise<A>
  /** Creates the missing tables and views. */
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

/**
 * An insert of many rows. Its text and values are built on access, since a store that runs `each` does not need them.
 */
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

/** Inserts rows in their order; `after`: the clauses for conflicts and `returning`. Returns the returned rows. */
export function* insert(
  into: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Value>>,
  after: string,
): Work<ReadonlyArray<Row>> {
  const returned: Array<Row> = []
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    returned.push(...(yield new Insertion(into, columns, rows.slice(at, at + rowsAtOnce), after)))
  }
  return returned
}

const tables = [
  // `position`, `cursor` and `chain_head`: of the last applied event, or of the snapshot.
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
  // Entries of a snapshot in parts, until all parts have arrived.
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
 * Creates the missing tables, and the views for a product's own queries. `json`: the expression that reads the column
 * `value` as JSON; `exists`: a statement that returns a row if a relation has this name. Existing relations are not
 * touched: for `create index if not exists` PostgreSQL locks the table, which another process may be using.
 */
export function* schema(json: string, exists: (relation: string) => Statement): Work<void> {
  for (const text of [...tables, ...views(json)]) {
    const [relation] = /\bbailiwick_\w+/.exec(text)!
    if ((yield exists(relation)).length === 0) yield { text, values: [] }
  }
}
