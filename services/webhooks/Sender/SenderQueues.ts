/**
 * Decides which waiting task is sent next: webhooks take turns, account by account, within all limits.
 *
 * A line that may not send is parked at the limit that it waits for, and is woken when there is room: only as many
 * lines as there is room for, so the cost of a send does not depend on the number of waiting lines. Two invariants
 * ensure that no line is forgotten: 1. While lines are parked at a destination, at least as many other lines are near
 * it as it has room for. 2. While lines are parked for silence, at least as many lines of silent destinations are ready
 * as may be sent. A woken line that may not send, because it now waits for another limit, passes its turn on.
 */
import { type Host, hostOf, type Kind, kinds, type Lane } from "./SenderLanes.ts"
import type { SlotLimits } from "./SlotLimits.ts"
import { Turns } from "./Turns.ts"

/** The share of each limit that later tries may use. */
export const laterShare = 0.75
const firstTriesInARow = 7

const shareOf = (kind: Kind): number => kind === "first" ? 1 : laterShare

export class SenderQueues<Task extends { readonly host: string }> {
  private readonly limits: SlotLimits
  private readonly hosts = new Map<string, Host<Task>>()
  private readonly ready = { first: new Turns<Lane<Task>>(), later: new Turns<Lane<Task>>() }
  private readonly quiet = { first: new Turns<Lane<Task>>(), later: new Turns<Lane<Task>>() }
  /** Maximum number of idle destinations that are remembered as answering. */
  private readonly memory: number
  private firstInARow = 0
  private active = 0
  private silent = 0

  constructor(limits: SlotLimits, memory: number) {
    this.limits = limits
    this.memory = memory
  }

  /** Number of active sends. */
  get sending(): number {
    return this.active
  }

  /** Number of destinations in memory. */
  get destinations(): number {
    return this.hosts.size
  }

  /** Adds a task after the others of its lane and kind. */
  add(lane: Lane<Task>, kind: Kind, task: Task): void {
    lane.waiting[kind].push(task)
    if (lane.place[kind] === "none") this.queue(lane, kind)
  }

  /** Takes the next task that may be sent, and its lane; it counts as active from now on. */
  next(): { readonly lane: Lane<Task>; readonly task: Task } | undefined {
    const order: ReadonlyArray<Kind> = this.firstInARow < firstTriesInARow ? ["first", "later"] : ["later", "first"]
    for (const kind of order) {
      if (this.active >= this.limits.active * shareOf(kind)) continue
      const lane = this.ready[kind].take((lane) => this.maySend(lane, kind))
      if (lane === undefined) continue
      this.firstInARow = kind === "first" ? this.firstInARow + 1 : 0
      return { lane, task: this.start(lane, kind) }
    }
    return undefined
  }

  /** A send to this destination has ended. `answered`: null if nothing is known. */
  ended(key: string, answered: boolean | null): void {
    this.active--
    const host = this.hosts.get(key)
    if (host === undefined) return
    if (!host.answers) this.silent--
    host.active--
    if (answered !== null && answered !== host.answers) {
      host.answers = answered
      this.silent += answered ? -host.active : host.active
    }
    for (const kind of kinds) {
      if (host.answers) this.unquiet(host, kind)
      this.wake(host, kind)
      this.wakeSilent(kind)
    }
    this.forget(host)
  }

  /** If the lane's window has room, its lines that waited for it take turns again. */
  widened(lane: Lane<Task>): void {
    if (lane.active >= lane.window) return
    for (const kind of kinds) if (lane.place[kind] === "window") this.queue(lane, kind)
  }

  /** Empties the lines of these lanes, which must be all; returns their tasks. */
  drain(lanes: Iterable<Lane<Task>>): ReadonlyArray<Task> {
    const tasks = [...lanes].flatMap(({ place, waiting }) => {
      place.first = place.later = "none"
      return [...waiting.first.splice(0), ...waiting.later.splice(0)]
    })
    for (const kind of kinds) {
      this.ready[kind].clear()
      this.quiet[kind].clear()
      for (const host of this.hosts.values()) {
        host.near[kind] = 0
        delete host.parked[kind]
        delete host.quiet[kind]
      }
    }
    for (const host of this.hosts.values()) this.forget(host)
    return tasks
  }

  /** Whether a line from `ready` may send; otherwise parks it and passes its turn on. */
  private maySend(lane: Lane<Task>, kind: Kind): boolean {
    const host = this.host(lane.waiting[kind][0]!.host)
    if (lane.active < lane.window && this.hostRoom(host, kind) > 0) {
      if (host.answers || this.silentRoom(kind) > 0) return true
      this.parkSilent(host, lane, kind)
      return false
    }
    host.near[kind]--
    if (lane.active >= lane.window) {
      lane.place[kind] = "window"
      this.wake(host, kind)
    } else this.parkAt(host, lane, kind)
    if (!host.answers) this.wakeSilent(kind)
    this.forget(host)
    return false
  }

  private start(lane: Lane<Task>, kind: Kind): Task {
    const task = lane.waiting[kind].shift()!
    const host = this.host(task.host)
    host.near[kind]--
    host.active++
    if (!host.answers) this.silent++
    lane.active++
    this.active++
    lane.place[kind] = "none"
    if (lane.waiting[kind].length > 0) this.queue(lane, kind)
    return task
  }

  /** Lets a line that is near no destination take turns, after the lines that wait for the same limit. */
  private queue(lane: Lane<Task>, kind: Kind): void {
    const host = this.host(lane.waiting[kind][0]!.host)
    if (host.parked[kind] !== undefined) {
      this.parkAt(host, lane, kind)
      this.wake(host, kind)
      return
    }
    host.near[kind]++
    if (host.answers || this.quiet[kind].accounts === 0) return this.readied(lane, kind)
    this.parkSilent(host, lane, kind)
    this.wakeSilent(kind)
  }

  private readied(lane: Lane<Task>, kind: Kind): void {
    lane.place[kind] = "ready"
    this.ready[kind].add(lane.accountId, lane)
  }

  private parkAt(host: Host<Task>, lane: Lane<Task>, kind: Kind): void {
    lane.place[kind] = "host"
    const parked = host.parked[kind] ??= new Turns()
    parked.add(lane.accountId, lane)
  }

  /** Parks a line near a silent destination among the lines of all silent destinations. */
  private parkSilent(host: Host<Task>, lane: Lane<Task>, kind: Kind): void {
    lane.place[kind] = "silent"
    this.quiet[kind].add(lane.accountId, lane)
    const quiet = host.quiet[kind] ??= new Set()
    quiet.add(lane)
  }

  /**
   * Wakes as many lines that wait for this destination as it has room for beside the lines near it. If it is silent,
   * they go after the lines of other silent destinations: otherwise its own ending sends would keep those waiting.
   */
  private wake(host: Host<Task>, kind: Kind): void {
    const parked = host.parked[kind]
    if (parked === undefined) return
    while (this.hostRoom(host, kind) > host.near[kind]) {
      const lane = parked.take(() => true)
      if (lane === undefined) break
      host.near[kind]++
      if (host.answers) this.readied(lane, kind)
      else this.parkSilent(host, lane, kind)
    }
    if (parked.accounts === 0) delete host.parked[kind]
    if (!host.answers) this.wakeSilent(kind)
  }

  /** Lets as many lines of silent destinations take turns as silent destinations have room for. */
  private wakeSilent(kind: Kind): void {
    const quiet = this.quiet[kind]
    for (let room = this.silentRoom(kind); room > 0 && quiet.accounts > 0; room--) {
      const lane = quiet.take(() => true)!
      this.host(lane.waiting[kind][0]!.host).quiet[kind]?.delete(lane)
      this.readied(lane, kind)
    }
  }

  /** This destination answers: its lines no longer wait for the limit of silent ones. */
  private unquiet(host: Host<Task>, kind: Kind): void {
    for (const lane of host.quiet[kind] ?? []) {
      this.quiet[kind].delete(lane.accountId, lane)
      this.readied(lane, kind)
    }
    delete host.quiet[kind]
  }

  private hostRoom({ active, answers }: Host<Task>, kind: Kind): number {
    return Math.ceil((answers ? this.limits.perHost : this.limits.perSilentHost) * shareOf(kind) - active)
  }

  private silentRoom(kind: Kind): number {
    return Math.ceil(Math.floor(this.limits.active / 2) * shareOf(kind) - this.silent)
  }

  private host(key: string): Host<Task> {
    let host = this.hosts.get(key)
    if (host === undefined) this.hosts.set(key, host = hostOf(key))
    return host
  }

  /** Forgets idle destinations. An unknown one counts as silent, so only answering ones must be remembered. */
  private forget({ active, answers, key, near, parked }: Host<Task>): void {
    const waits = near.first > 0 || near.later > 0 || parked.first !== undefined || parked.later !== undefined
    if (active === 0 && !waits && (!answers || this.hosts.size > this.memory)) this.hosts.delete(key)
  }
}
