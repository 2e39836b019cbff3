/**
 * Gathers refused requests of one kind into one audit record per pause, within fixed bounds of memory and of records.
 *
 * A kind is an actor, a credential, a status, a code and a route. Each new record of a kind waits twice as long as the
 * record before it, from one second up to half a minute; a kind that was quiet for a minute starts from one second
 * again. Beyond the bounds, the refusals of an actor share one record per code, and beyond those, all refusals of a
 * code share one record. Request ids beyond the bounds are counted and not listed.
 */

export interface Refusal {
  readonly requestId: string
  /** The route's template, null for an unknown path. */
  readonly route: string | null
  readonly status: number
  readonly code: string
  readonly actor: string | null
  /** The kind of credential, with the public prefix of a key: `mail_k_3fA9xQ21`, `token`, `cookie`, `none`. */
  readonly credential: string
  /** The client's network, as sessions show it; null where the address is not known. */
  readonly network?: string | null
}

/** An audit record that is not yet written. Its id is made first, so that an answer can name it. */
export interface Gathered {
  readonly id: string
  readonly at: number
  readonly requestId: string
  readonly status: number
  readonly code: string
  readonly actor: string | null
  /** Null where the record holds several kinds. */
  readonly route: string | null
  readonly credential: string | null
  readonly requestIds: ReadonlyArray<string>
  /** Networks that the first of the refusals came from. */
  readonly networks: ReadonlySet<string>
  readonly count: number
  /** Milliseconds until the record is written. */
  readonly pause: number
}

export interface Bounds {
  /** Kinds of the last minute. */
  readonly kinds: number
  /** Kinds of one actor, or of one credential where no actor was recognised. */
  readonly kindsOfOne: number
  /** Request ids of records that are not yet written. */
  readonly ids: number
  /** Request ids of one actor or credential, likewise. */
  readonly idsOfOne: number
}

interface Kind {
  readonly owner: string
  readonly alone: boolean
  readonly pause: number
  readonly until: number
}

interface Row extends Gathered {
  readonly key: string
  readonly owner: string
  readonly requestIds: Array<string>
  readonly networks: Set<string>
  count: number
}

/** Request ids that one record lists. */
const maxListed = 500

/** Networks that one record lists. */
const maxNetworks = 20

const firstPause = 1_000
const longestPause = 30_000
const remembered = 60_000

const ownerOf = ({ actor, credential }: Refusal) => actor ?? credential

/** Counts by owner; an owner whose count is 0 is forgotten. */
class Tally {
  readonly #counts = new Map<string, number>()
  get size() {
    return this.#counts.size
  }
  of(owner: string) {
    return this.#counts.get(owner) ?? 0
  }
  add(owner: string, n: number) {
    const sum = this.of(owner) + n
    if (sum === 0) this.#counts.delete(owner)
    else this.#counts.set(owner, sum)
  }
}

export class GatheredRejections {
  /** By key, in the order in which they are forgotten. */
  readonly #kinds = new Map<string, Kind>()
  readonly #waiting = new Map<string, Row>()
  readonly #unwritten = new Map<string, Row>()
  readonly #kindsOf = new Tally()
  readonly #idsOf = new Tally()
  readonly #bounds: Bounds
  #ids = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  #forget(now: number) {
    for (const [key, { alone, owner, until }] of this.#kinds) {
      if (until > now) break
      this.#kinds.delete(key)
      if (alone) this.#kindsOf.add(owner, -1)
    }
  }

  #remember(key: string, kind: Kind) {
    if (!this.#kinds.delete(key) && kind.alone) this.#kindsOf.add(kind.owner, 1)
    this.#kinds.set(key, kind)
  }

  /** The key of the record that the refusal belongs to, and whether the record holds its kind alone. */
  #keyOf(refusal: Refusal): { readonly key: string; readonly alone: boolean } {
    const { actor, code, credential, route, status } = refusal
    const { kinds, kindsOfOne } = this.#bounds
    const own = [status, code, credential, route, actor].join(" ")
    // Kinds are forgotten after a minute; records wait longer while the database is away.
    const room = this.#kinds.size < kinds && this.#unwritten.size < 2 * kinds
    if (this.#kinds.has(own) || room && this.#kindsOf.of(ownerOf(refusal)) < kindsOfOne) {
      return { key: own, alone: true }
    }
    const ofAll = `${status} ${code}`
    const shared = `${ofAll} ${actor}`
    return { key: actor !== null && (room || this.#kinds.has(shared)) ? shared : ofAll, alone: false }
  }

  #list(row: Row, requestId: string) {
    row.requestIds.push(requestId)
    this.#idsOf.add(row.owner, 1)
    this.#ids++
  }

  #locate({ networks }: Row, { network }: Refusal) {
    if (network && networks.size < maxNetworks) networks.add(network)
  }

  /** Whether the refusal is the first of its kind for a minute and may have a record of its own. Does not add it. */
  isFirst(refusal: Refusal, now: number): boolean {
    this.#forget(now)
    const { alone, key } = this.#keyOf(refusal)
    if (!alone || this.#kinds.has(key)) return false
    this.#remember(key, { owner: ownerOf(refusal), alone, pause: firstPause / 2, until: now + remembered })
    return true
  }

  /** Adds the refusal to the waiting record of its kind; undefined where there is none. */
  add(refusal: Refusal, now: number): Gathered | undefined {
    this.#forget(now)
    const row = this.#waiting.get(this.#keyOf(refusal).key)
    if (row === undefined) return undefined
    row.count++
    this.#locate(row, refusal)
    const room = this.#ids < this.#bounds.ids && this.#idsOf.of(row.owner) < this.#bounds.idsOfOne
    if (room && row.requestIds.length < maxListed) this.#list(row, refusal.requestId)
    return row
  }

  /** Begins the next record of the refusal's kind. */
  open(refusal: Refusal, id: string, now: number): Gathered {
    const { alone, key } = this.#keyOf(refusal)
    const { actor, code, credential, requestId, route, status } = refusal
    const owner = ownerOf(refusal)
    const pause = Math.min(longestPause, (this.#kinds.get(key)?.pause ?? firstPause / 2) * 2)
    this.#remember(key, { owner, alone, pause, until: now + remembered })
    const row: Row = {
      id,
      at: now,
      requestId,
      status,
      code,
      pause,
      key,
      owner,
      count: 1,
      requestIds: [],
      networks: new Set(),
      ...(alone ? { credential, route } : { credential: null, route: null }),
      actor: key === `${status} ${code}` ? null : actor,
    }
    this.#list(row, requestId)
    this.#locate(row, refusal)
    this.#waiting.set(key, row)
    this.#unwritten.set(id, row)
    return row
  }

  /** Ends a record: the next refusal of its kind begins another. */
  close(id: string) {
    const row = this.#unwritten.get(id)
    if (row !== undefined && this.#waiting.get(row.key) === row) this.#waiting.delete(row.key)
  }

  /** Forgets a record that was written, or that could not be. */
  done(id: string) {
    const row = this.#unwritten.get(id)
    if (row === undefined) return
    this.#unwritten.delete(id)
    this.#idsOf.add(row.owner, -row.requestIds.length)
    this.#ids -= row.requestIds.length
  }

  /** Records that are not yet written, the oldest first. */
  get unwritten(): ReadonlyArray<Gathered> {
    return [...this.#unwritten.values()]
  }

  /** Entries that are held in memory. */
  get size() {
    return {
      kinds: this.#kinds.size,
      owners: Math.max(this.#kindsOf.size, this.#idsOf.size),
      records: this.#unwritten.size,
      ids: this.#ids,
    }
  }
}
