/**
 * The connections of one server: their number, the state of each, and which one is closed when a new connection finds
 * no room. The resource is file descriptors: without a bound, connections that cost their client nothing take all of
 * them, and the process can open neither a connection nor a file.
 *
 * The first to be closed is the connection that has waited longest for its first complete header, where that is more
 * than a tick; then the longest idle connection; then any that waits for its first header; then one whose client has
 * not read its answer for longer than a header may take; then, of the caller with the most connections whose requests'
 * bodies are incomplete, the one that has waited longest. It is answered before it is closed, and gives way where it has
 * waited for more than a tick, or where its caller has more than its share. Where there is none of these, the new
 * connection is refused. Time is counted in ticks, a tenth of the header's deadline each, so that a request reads no
 * clock.
 */

/** Ticks within which a complete header must arrive. */
export const headerTicks = 10

/**
 * The system may still be sending an idle connection's last answer: the connection gets one more tick per this many
 * bytes.
 */
const bytesPerTick = 16 * 1024

/** Bytes that the system buffers, whether or not the client reads. */
export const buffered = 64 * 1024

/** A caller may fill this part of the connections with incomplete bodies before young ones give way. */
const share = 1 / 4

/** The part of the connections that may be closing after their answer, beyond the limit; the others are cut. */
const courtesy = 1 / 8

/** A body of which the rest has not arrived. */
interface Awaited {
  /** Whose request it is: the principal, or an address while there is none. */
  readonly caller: string
  /** Ends the wait: the request is answered 408, or 503 by a server that stops, with `Connection: close`. */
  readonly giveUp: (stopping: boolean) => void
}

const none: ReadonlyArray<Awaited> = []

export class Connection {
  /** Requests that are being answered. */
  running = 0
  /** The tick of its last change. */
  since: number
  /** Whether a request has arrived on it. */
  served = false
  /** Ticks that it may be idle beyond the deadline. */
  grace = 0
  /** The incomplete bodies of its requests: several over HTTP/2 only. */
  bodies = none
  /** Whether its answer is complete and waits for the client to read it. */
  unread: () => boolean = () => false
  /** Ends it at once. */
  readonly cut: () => void
  /** Ends it after the answers under way. */
  readonly finish: () => void
  constructor(since: number, cut: () => void, finish: () => void) {
    this.since = since
    this.cut = cut
    this.finish = finish
  }
}

export class ListenerConnections {
  readonly max: number
  /** Without a complete header yet, oldest first. */
  private readonly halfOpen = new Set<Connection>()
  /** Between two requests, oldest first. */
  private readonly idle = new Set<Connection>()
  private readonly busy = new Set<Connection>()
  /** Busy connections whose client does not read, oldest first. */
  private readonly unread = new Set<Connection>()
  /** Busy connections with incomplete bodies by caller, oldest first. */
  private readonly awaited = new Map<string, Set<Connection>>()
  /** Gave way while their body was incomplete, and end with their answer; oldest first. */
  private readonly leaving = new Set<Connection>()
  private ticks = 0
  private stopping = false
  /** Connections that gave way or were refused since the last report. */
  private displaced = 0
  private whenEmpty: () => void = () => {}

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.held + this.leaving.size
  }

  /** Without those that are about to end. */
  private get held(): number {
    return this.halfOpen.size + this.idle.size + this.busy.size
  }

  get answering(): number {
    return this.busy.size
  }

  /** Admits a new connection; null: all others are busy, and the caller closes it. */
  opened(cut: () => void, finish: () => void = cut): Connection | null {
    if (this.stopping || (this.held >= this.max && !this.makeRoom())) {
      this.displaced++
      return null
    }
    const connection = new Connection(this.ticks, cut, finish)
    this.halfOpen.add(connection)
    return connection
  }

  /** Ends the connection that is first to give way; false: there is none. */
  makeRoom(): boolean {
    const [waiting] = this.halfOpen
    const [idle] = this.idle
    const [unread] = this.unread
    const late = waiting !== undefined && this.ticks - waiting.since > 1 ? waiting : undefined
    const victim = late ?? idle ?? waiting ?? unread
    if (victim === undefined) return this.giveUp()
    this.displaced++
    this.end(victim)
    return true
  }

  /** Answers the connection with the slowest body and lets it go; false: there is none. */
  private giveUp(): boolean {
    const victim = this.slowest()
    if (victim === undefined) return false
    this.displaced++
    const { bodies } = victim
    this.remove(victim)
    const [first] = this.leaving
    if (first !== undefined && this.leaving.size >= this.max * courtesy) this.end(first)
    victim.since = this.ticks
    this.leaving.add(victim)
    for (const { giveUp } of bodies) giveUp(false)
    return true
  }

  private slowest(): Connection | undefined {
    let most: ReadonlySet<Connection> = new Set()
    for (const connections of this.awaited.values()) if (connections.size > most.size) most = connections
    const young = most.size > this.max * share
    for (const connection of most) {
      if (!young && this.ticks - connection.since <= 1) return undefined
      // Over HTTP/2 the answer to another request may be under way.
      if (connection.running === connection.bodies.length) return connection
    }
    return undefined
  }

  /** A complete header arrived. `unread`: whether the answer is complete and waits to be read. */
  requested(connection: Connection, unread: () => boolean = () => false): void {
    if (connection.running++ > 0) return
    if (!this.halfOpen.delete(connection) && !this.idle.delete(connection)) return
    connection.served = true
    connection.since = this.ticks
    connection.unread = unread
    this.busy.add(connection)
  }

  /** The rest of a request's body is awaited; call the result once it has arrived, or is no longer awaited. */
  awaits(connection: Connection, caller: string, giveUp: (stopping: boolean) => void): () => void {
    if (!this.busy.has(connection)) return () => {}
    const body = { caller, giveUp }
    connection.bodies = [...connection.bodies, body]
    const connections = this.awaited.get(caller) ?? new Set()
    this.awaited.set(caller, connections.add(connection))
    return () => {
      connection.bodies = connection.bodies.filter((other) => other !== body)
      this.arrived(connection, caller)
    }
  }

  private arrived(connection: Connection, caller: string): void {
    if (connection.bodies.some((other) => other.caller === caller)) return
    const connections = this.awaited.get(caller)
    connections?.delete(connection)
    if (connections?.size === 0) this.awaited.delete(caller)
  }

  /** The answer was given to the system, which may still have to send `bytes`. */
  answered(connection: Connection, bytes = 0): void {
    if (--connection.running > 0 || !this.busy.delete(connection)) return
    this.unread.delete(connection)
    connection.since = this.ticks
    connection.grace = bytes <= buffered ? 0 : Math.ceil(bytes / bytesPerTick)
    this.idle.add(connection)
    if (this.stopping) connection.finish()
  }

  /** The connection has ended, from either side. */
  gone(connection: Connection): void {
    this.remove(connection)
    if (this.size === 0) this.whenEmpty()
  }

  /** A tenth of the header's deadline has passed. */
  tick(): void {
    this.ticks++
    for (const connection of this.halfOpen) {
      if (this.ticks - connection.since <= headerTicks) break
      this.end(connection)
    }
    for (const connection of this.idle) {
      const over = this.ticks - connection.since - headerTicks
      if (over <= 0) break
      if (over > connection.grace) this.end(connection)
    }
    for (const connection of this.leaving) {
      if (this.ticks - connection.since <= 1) break
      this.end(connection)
    }
    for (const connection of this.busy) {
      if (this.ticks - connection.since > headerTicks && connection.unread()) this.unread.add(connection)
    }
  }

  /** Connections that gave way or were refused since the last report. */
  report(): number {
    const { displaced } = this
    this.displaced = 0
    return displaced
  }

  /**
   * Stops admitting connections; each one ends with its next answer. Bodies that are still arriving are given up: their
   * requests have not begun, and a slow one would reach its deadline, or the end of the wait for requests in flight.
   */
  stop(): void {
    this.stopping = true
    this.giveUpBodies()
  }

  /**
   * Ends the connections without a request under way, cuts those whose body was given up at the stop, and gives up the
   * bodies that were awaited since.
   */
  finishIdle(): void {
    for (const connection of this.leaving) this.end(connection)
    this.giveUpBodies()
    for (const connection of this.halfOpen) this.end(connection)
    for (const connection of this.idle) connection.finish()
  }

  cutAll(): void {
    for (const set of [this.halfOpen, this.idle, this.busy, this.leaving]) {
      for (const connection of set) this.end(connection)
    }
  }

  /** Resolves when no connection is left. */
  readonly empty = (): Promise<void> =>
    new Promise((resolve) => {
      if (this.size === 0) return resolve()
      this.whenEmpty = resolve
    })

  private giveUpBodies(): void {
    for (const connection of this.busy) {
      const { bodies } = connection
      // Over HTTP/2 the answer to another request may be under way.
      if (bodies.length > 0 && connection.running === bodies.length) {
        this.remove(connection)
        this.leaving.add(connection)
      }
      for (const { giveUp } of bodies) giveUp(true)
    }
  }

  private end(connection: Connection): void {
    this.remove(connection)
    connection.cut()
    if (this.size === 0) this.whenEmpty()
  }

  private remove(connection: Connection): void {
    this.halfOpen.delete(connection)
    this.idle.delete(connection)
    this.busy.delete(connection)
    this.unread.delete(connection)
    this.leaving.delete(connection)
    const { bodies } = connection
    connection.bodies = none
    for (const { caller } of bodies) this.arrived(connection, caller)
  }
}
