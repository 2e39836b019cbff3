/**
 * Where the product stands in a project's history, and what it was told: everything that is written, as work for a store.
 *
 * What may be relied on: facts, cursor, chain head, epoch and pinned keys change together or not at all; an event is
 * applied only where it follows the last one (same epoch, next position, its `prev_digest` our chain head), and once; a
 * snapshot takes everything's place at once and leaves access closed.
 */
import { change, fillStaged, put } from "./FactTable.ts"
import { announcedBy, type Change, changesOf, compromisedBy, type Fact, factsOf, groups } from "./EventProjection.ts"
import type { Json } from "./Canonical.ts"
import { Gap, Refusal } from "./Refusal.ts"
import { ask, insert, type Row, type Work } from "./Store.ts"
import type { Checkpoint, VerifiedEvent, VerifiedSnapshot } from "./Verify.ts"

export interface Standing {
  readonly epoch: number
  readonly position: number
  readonly cursor: string
  readonly chainHead: string
  /** Whether anybody may be let in at all. */
  readonly open: boolean
  readonly closedBecause: string | null
  readonly pins: ReadonlyArray<string>
}

/** Numbers of events are remembered this far back; older ones are refused by their position alone. */
const remembered = 10_000

/** Why access is closed where nothing but a snapshot opens it, whichever process goes on from here. */
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

/** Null before the first snapshot. */
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

/** The row, locked to the end of the transaction in either database. */
function* locked(projectId: string): Work<Standing> {
  const [row] = yield* ask(
    `update bailiwick_consumer set project_id = project_id where project_id = $1 returning *`,
    projectId,
  )
  const found = standingOf(row, [])
  if (found === null) throw new Gap("nothing to go on from yet")
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
 * Pins what an event announces. Where a key was stolen, nothing stands but the key that says so and what it names: the
 * thief may have announced others.
 */
function* commit(projectId: string, event: VerifiedEvent, pins: Set<string>): Work<void> {
  const [next, stolen] = [announcedBy(event), compromisedBy(event)]
  if (stolen !== null) {
    yield* ask(`delete from bailiwick_pins where project_id = $1`, projectId)
    pins.clear()
  }
  const kids = stolen === null ? next : [event.kid, ...next].filter((kid) => kid !== stolen)
  yield* pin(projectId, kids)
  for (const kid of kids) pins.add(kid)
}

/** The events that follow each other from a place on, and what is wrong with the first that does not. */
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

/** Remembers the numbers of events, and gives those that were not remembered. */
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
 * Applies events in their order and gives those that were new. Throws Gap where one does not follow, and Refusal where
 * the key that signed it is pinned no more, or speaks of its own loss. Access is closed with an event that says that a key
 * was stolen: what the thief may have told before is not to be had from events. A page is few statements: of a fact that
 * it changes several times only what it comes to is written.
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
      throw new Refusal("kid", "not a key that was committed to")
    }
    if (!fresh.delete(event.jti)) continue
    for (const one of changesOf(event)) changes.set(`${one.group} ${one.id}`, one)
    yield* commit(projectId, event, pins)
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
      position - remembered,
    )
  }
  return applied
}

/** Puts what `fill` writes in the place of everything that was known. */
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
    throw new Gap("a snapshot of an earlier place")
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
 * Puts a snapshot in the place of everything that was known. Access stays closed. Throws Gap where it is older than what
 * is known.
 */
export function* swap(projectId: string, snapshot: VerifiedSnapshot): Work<ReadonlyArray<Fact>> {
  const facts = factsOf(snapshot.state)
  yield* replace(projectId, snapshot, put(projectId, facts))
  return facts
}

/** As `swap`, with the facts that were laid by of this snapshot, so many of them. */
export function* swapStaged(projectId: string, snapshot: Checkpoint, count: number): Work<void> {
  yield* replace(projectId, snapshot, fillStaged(projectId, snapshot, count))
}

/** Nobody gets in from now on. That a snapshot is needed stays said until there is one. */
export function* close(projectId: string, because: string): Work<void> {
  yield* ask(
    `insert into bailiwick_consumer (project_id, is_open, closed_because) values ($1, 0, $2)
     on conflict (project_id) do update set is_open = 0, closed_because = case
       when bailiwick_consumer.closed_because = $3 and excluded.closed_because <> $4 then bailiwick_consumer.closed_because
       else excluded.closed_because end`,
    ...[projectId, because, keyStolen, catchingUp],
  )
}

/** Lets people in again; gives whether the place is still the one that was found to be the head. */
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

/** Forgets everything of a project, pinned keys included: the way back for whom a key change has left behind. */
export function* forget(projectId: string): Work<void> {
  for (const table of ["consumer", "facts", "pins", "seen", "staged"]) {
    yield* ask(
      `delete from bailiwick_${table} where project_id = $1`,
      projectId,
    )
  }
}

/** Everything that is known, in the order of groups and ids. */
export function* facts(projectId: string): Work<ReadonlyArray<Fact>> {
  const rows = yield* ask(
    `select about, id, value from bailiwick_facts where project_id = $1`,
    projectId,
  )
  const found = rows.map(({ about, id, value }) => ({
    group: String(about) as Fact["group"],
    id: String(id),
    value: JSON.parse(String(value)) as Json,
  }))
  return found.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || (a.id < b.id ? -1 : 1))
}
