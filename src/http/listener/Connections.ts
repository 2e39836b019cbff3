/**
 * The connections of one server: how many there are, what each is doing, and which one gives way when a new one comes and
 * there is no room. Descriptors are the resource: without a bound, connections that cost their client nothing take all of
 * them, and neither a connection nor a file can be opened any more.
 *
 * First gives way the connection that has waited longest for its first whole header, where that is more than a tick; then
 * the one that has been idle longest; then any that waits for its first header; then one whose client has not read its
 * answer for longer than a header may take. Where none of these exists the new connection is refused. Time is counted in ticks, a tenth of the header's deadline each, so a request costs no
 * reading of a clock.
 */

/** Ticks within which a whole header arrives. */
export const headerTicks = 10

/** Bytes an idle connection's last answer may need one more tick for: the system may still be sending it. */
const bytesPerTick = 16 * 1024

/** Bytes that the system takes at once, whether or not the client reads. */
export const buffered = 64 * 1024

export class Connection {
  /** Requests that are being answered. */
  running = 0
  /** The tick of its last change. */
  since: number
  /** Whether a request has come over it. */
  served = false
  /** Ticks that it may be idle beyond the deadline. */
  grace = 0
  /** Whether its answer was given and waits for the client to read it. */
  unread: () => boolean = () => false
  /** Ends it at once. */
  readonly cut: () => void
  /** Ends it once what is under way has been answered. */
  readonly finish: () => void
  constructor(since: number, cut: () => void, finish: () => void) {
    this.since = since
    this.cut = cut
    this.finish = finish
  }
}

export class Connections {
  readonly max: number
  /** Without a whole header yet, oldest first. */
  private readonly halfOpen = new Set<Connection>()
  /** Between two requests, oldest first. */
  private readonly idle = new Set<Connection>()
  private readonly busy = new Set<Connection>()
  /** Busy ones whose client does not read, oldest first. */
  private readonly unread = new Set<Connection>()
  private ticks = 0
  private stopping = false
  /** Connections that gave way or were refused since the last report. */
  private displaced = 0
  private whenEmpty: () => void = () => {}

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.halfOpen.size + this.idle.size + this.busy.size
  }

  get answering(): number {
    return this.busy.size
  }

  /** Takes a new connection in; null: all others are busy, and it is to be closed. */
  opened(cut: () => void, finish: () => void = cut): Connection | null {
    if (this.stopping || (this.size >= this.max && !this.makeRoom())) {
      this.displaced++
      return null
    }
    const connection = new Connection(this.ticks, cut, finish)
    this.halfOpen.add(connection)
    return connection
  }

  /** Ends the connection that others are to be preferred to; false: there is none. */
  makeRoom(): boolean {
    const [waiting] = this.halfOpen
    const [idle] = this.idle
    const [unread] = this.unread
    const late = waiting !== undefined && this.ticks - waiting.since > 1 ? waiting : undefined
    const victim = late ?? idle ?? waiting ?? unread
    if (victim === undefined) return false
    this.displaced++
    this.end(victim)
    return true
  }

  /** A whole header came. `unread`: whether the answer is given and waits to be read. */
  requested(connection: Connection, unread: () => boolean = () => false): void {
    if (connection.running++ > 0) return
    if (!this.halfOpen.delete(connection) && !this.idle.delete(connection)) return
    connection.served = true
    connection.since = this.ticks
    connection.unread = unread
    this.busy.add(connection)
  }

  /** The answer was given to the system; `bytes` of it may still have to be sent. */
  answered(connection: Connection, bytes = 0): void {
    if (--connection.running > 0 || !this.busy.delete(connection)) return
    this.unread.delete(connection)
    connection.since = this.ticks
    connection.grace = bytes <= buffered ? 0 : Math.ceil(bytes / bytesPerTick)
    this.idle.add(connection)
    if (this.stopping) connection.finish()
  }

  /** It has ended, whoever ended it. */
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
    for (const connection of this.busy) {
      if (this.ticks - connection.since > headerTicks && connection.unread()) this.unread.add(connection)
    }
  }

  /** How many gave way or were refused since it was last asked. */
  report(): number {
    const { displaced } = this
    this.displaced = 0
    return displaced
  }

  /** From now on no connection is taken in, and each ends with its next answer. */
  stop(): void {
    this.stopping = true
  }

  /** Ends those that nothing is being answered on. */
  finishIdle(): void {
    for (const connection of this.halfOpen) this.end(connection)
    for (const connection of this.idle) connection.finish()
  }

  cutAll(): void {
    for (const set of [this.halfOpen, this.idle, this.busy]) for (const connection of set) this.end(connection)
  }

  /** Resolves when none is left. */
  readonly empty = (): Promise<void> =>
    new Promise((resolve) => {
      if (this.size === 0) return resolve()
      this.whenEmpty = resolve
    })

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
  }
}
