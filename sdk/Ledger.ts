/**
 * The product's local state: its position in a project's history and the entries of its state. Every write to it, as
 * work for a store.
 *
 * Guarantees: entries, cursor, chain head, epoch and pinned keys change together or not at all. An event is applied
 * once, and only if it follows the last one (same epoch, next position, its `prev_digest` is the local chain head). A
 * snapshot replaces everything at once and leaves access closed.
 */
import { change, fillStaged, put } from "./EntryTable.ts"
import {
  announcedBy,
  type Change,
  changesOf,
  compromisedBy,
  entriesOf,
  groups,
  type StateEntry,
} from "./EventProjection.ts"
import type { Json } from "./Canonical.ts"
import { Gap, Refusal } from "./Refusal.ts"
import { ask, insert, type Row, type Work } from "./Store.ts"
import type { Checkpoint, VerifiedEvent, VerifiedSnapshot } from "./Verify.ts"

/** The product's position in the history, and whether access is open. */
export interface Standing {
  readonly epoch: number
  readonly position: number
  readonly cursor: string
  readonly chainHead: string
  /** Whether access is open; while it is closed, the gate admits no person. */
  readonly open: boolean
  readonly closedBecause: string | null
  readonly pins: ReadonlyArray<string>
}

/** Ids (`jti`) of events are kept for this many positions; an older event is recognised by its position alone. */
const keptPositions = 10_000

/** `closedBecause` after a key was stolen: only a snapshot opens access again, whichever process continues. */
export const keyStolen = "key_stolen"
const catchingUp = "catching_up"

const standingOf = (
  row: Row | undefined,
  pins: ReadonlyArray<Row>,
): Standing | null =>
  row === undefined || row["cursor"] === null ? null : {
    epoch: Number(row["epoch"]),
    position: Number(row["position"]),
    cursor: String(row["cursor"]),
    chainHead: String(row["chain_head"]),
    open: Number(row["is_open"]) === 1,
    closedBecause: row["closed_because"] === null ? null : String(row["closed_because"]),
    pins: pins.map(({ kid }) => String(kid)),
  }

/** The current standing; null before the first snapshot. */
export function* standing(projectId: string): Work<Standing | null> {
  const [row] = yield* ask(
    `select * from bailiwick_consumer where project_id = $1`,
    projectId,
  )
  return standingOf(
    row,
    yield* ask(
      `select kid from bailiwick_pins where project_id = $1 order by kid`,
      projectId,
    ),
  )
}

/** The standing, with its row locked to the end of the transaction (PostgreSQL and SQLite). */
function* locked(projectId: string): Work<Standing> {
  const [row] = yield* ask(
    `update bailiwick_consumer set project_id = project_id where project_id = $1 returning *`,
    projectId,
  )
  const found = standingOf(row, [])
  if (found === null) throw new Gap("no snapshot was applied yet")
  return found
}

function* pin(projectId: string, kids: ReadonlyArray<string>): Work<void> {
  for (const kid of kids) {
    yield* ask(
      `insert into bailiwick_pins (project_id, kid) values ($1, $2) on conflict do nothing`,
      projectId,
      kid,
    )
  }
}

function* pinned(projectId: string): Work<Set<string>> {
  const rows = yield* ask(`select kid from bailiwick_pins where project_id = $1`, projectId)
  return new Set(rows.map(({ kid }) => String(kid)))
}

/**
 * Pins the keys that an event announces. After a theft only the key that reports it and the keys that it names stay
 * pinned, since the thief may have announced others.
 */
function* pinAnnounced(projectId: string, event: VerifiedEvent, pins: Set<string>): Work<void> {
  const [next, stolen] = [announcedBy(event), compromisedBy(event)]
  if (stolen !== null) {
    yield* ask(`delete from bailiwick_pins where project_id = $1`, projectId)
    pins.clear()
  }
  const kids = stolen === null ? next : [event.kid, ...next].filter((kid) => kid !== stolen)
  yield* pin(projectId, kids)
  for (const kid of kids) pins.add(kid)
}

/** The events that follow each other from the standing on, and the gap before the first that does not. */
const following = (events: ReadonlyArray<VerifiedEvent>, { chainHead, epoch, position }: Standing) => {
  const good: Array<VerifiedEvent> = []
  for (const event of events) {
    const [at, head] = [good.at(-1)?.position ?? position, good.at(-1)?.digest ?? chainHead]
    if (event.epoch !== epoch) return { good, gap: new Gap(`epoch ${event.epoch} after ${epoch}`) }
    if (event.position <= at) continue
    if (event.position !== at + 1) return { good, gap: new Gap(`position ${event.position} after ${at}`) }
    if (event.prevDigest !== head) {
      return { good, gap: new Gap(`another history before position ${event.position}`) }
    }
    good.push(event)
  }
  return { good, gap: null }
}

/** Stores the ids of events and returns those that were not stored before. */
function* unseen(projectId: string, events: ReadonlyArray<VerifiedEvent>): Work<Set<string>> {
  const rows = yield* insert(
    "bailiwick_seen",
    ["project_id", "jti", "position"],
    events.map(({ jti, position }) => [projectId, jti, position]),
    "on conflict do nothing returning jti",
  )
  return new Set(rows.map(({ jti }) => String(jti)))
}

/**
 * Applies events in their order and returns those that were new. Throws Gap if one does not follow, and Refusal if the
 * key that signed it is no longer pinned, or reports its own theft. An event that reports a theft also closes access:
 * the thief may have signed earlier events, and only a snapshot corrects them. A page takes few statements: of several
 * changes to one entry only the last is written.
 */
export function* apply(
  projectId: string,
  events: ReadonlyArray<VerifiedEvent>,
): Work<ReadonlyArray<VerifiedEvent>> {
  const before = yield* locked(projectId)
  const pins = yield* pinned(projectId)
  const { gap, good } = following(events, before)
  const fresh = yield* unseen(projectId, good)
  const applied: Array<VerifiedEvent> = []
  const changes = new Map<string, Change>()
  for (const event of good) {
    if (!pins.has(event.kid) || compromisedBy(event) === event.kid) {
      throw new Refusal("kid", "not a pinned key")
    }
    if (!fresh.delete(event.jti)) continue
    for (const one of changesOf(event)) changes.set(`${one.group} ${one.id}`, one)
    yield* pinAnnounced(projectId, event, pins)
    applied.push(event)
  }
  if (gap !== null) throw gap
  yield* change(projectId, [...changes.values()])
  const { cursor, digest: chainHead, position } = good.at(-1) ?? { ...before, digest: before.chainHead }
  yield* ask(
    `update bailiwick_consumer set position = $2, chain_head = $3, cursor = $4 where project_id = $1`,
    ...[projectId, position, chainHead, cursor],
  )
  if (applied.some((event) => compromisedBy(event) !== null)) yield* close(projectId, keyStolen)
  if (applied.length > 0) {
    yield* ask(
      `delete from bailiwick_seen where project_id = $1 and position < $2`,
      projectId,
      position - keptPositions,
    )
  }
  return applied
}

/** Replaces all entries and pins by those of a snapshot; `fill` writes the entries. */
function* replace(projectId: string, snapshot: Checkpoint, fill: Work<void>): Work<void> {
  yield* close(projectId, catchingUp)
  const [row] = yield* ask(
    `select * from bailiwick_consumer where project_id = $1`,
    projectId,
  )
  const before = standingOf(row, [])
  const { chainHead, cursor, epoch, position } = snapshot
  if (
    before !== null &&
    (epoch < before.epoch ||
      epoch === before.epoch && position < before.position)
  ) {
    throw new Gap("the snapshot is older than the local state")
  }
  for (const table of ["bailiwick_facts", "bailiwick_pins"]) {
    yield* ask(`delete from ${table} where project_id = $1`, projectId)
  }
  if (before === null || before.epoch !== epoch) {
    yield* ask(`delete from bailiwick_seen where project_id = $1`, projectId)
  }
  yield* fill
  yield* pin(projectId, snapshot.keySet)
  yield* ask(
    `update bailiwick_consumer set epoch = $2, position = $3, cursor = $4, chain_head = $5 where project_id = $1`,
    ...[projectId, epoch, position, cursor, chainHead],
  )
}

/**
 * Replaces the whole local state by a snapshot and returns its entries. Access stays closed. Throws Gap if the snapshot
 * is older than the local state.
 */
export function* swap(projectId: string, snapshot: VerifiedSnapshot): Work<ReadonlyArray<StateEntry>> {
  const entries = entriesOf(snapshot.state)
  yield* replace(projectId, snapshot, put(projectId, entries))
  return entries
}

/** As `swap`, with the staged entries of this snapshot; throws Gap if there are not `count` of them. */
export function* swapStaged(projectId: string, snapshot: Checkpoint, count: number): Work<void> {
  yield* replace(projectId, snapshot, fillStaged(projectId, snapshot, count))
}

/** Closes access. The reason `key_stolen` stays until a snapshot replaces the state. */
export function* close(projectId: string, because: string): Work<void> {
  yield* ask(
    `insert into bailiwick_consumer (project_id, is_open, closed_because) values ($1, 0, $2)
     on conflict (project_id) do update set is_open = 0, closed_because = case
       when bailiwick_consumer.closed_because = $3 and excluded.closed_because <> $4 then bailiwick_consumer.closed_because
       else excluded.closed_because end`,
    ...[projectId, because, keyStolen, catchingUp],
  )
}

/** Opens access if the position is still the given one, which was found to be the head; returns whether it did. */
export function* open(
  projectId: string,
  { epoch, position }: Standing,
): Work<boolean> {
  const rows = yield* ask(
    `update bailiwick_consumer set is_open = 1, closed_because = null
     where project_id = $1 and epoch = $2 and position = $3 returning project_id`,
    ...[projectId, epoch, position],
  )
  return rows.length === 1
}

/**
 * Deletes the whole local state of a project, pinned keys included: the way back for a product that missed a key
 * change.
 */
export function* forget(projectId: string): Work<void> {
  for (const table of ["consumer", "facts", "pins", "seen", "staged"]) {
    yield* ask(
      `delete from bailiwick_${table} where project_id = $1`,
      projectId,
    )
  }
}

/** All entries, in the order of groups and ids. */
export function* facts(projectId: string): Work<ReadonlyArray<StateEntry>> {
  const rows = yield* ask(
    `select about, id, value from bailiwick_facts where project_id = $1`,
    projectId,
  )
  const found = rows.map(({ about, id, value }) => ({
    group: String(about) as StateEntry["group"],
    id: String(id),
    value: JSON.parse(String(value)) as Json,
  }))
  return found.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || (a.id < b.id ? -1 : 1))
}
