/**
 * Decides which waiting task is sent next: webhooks take turns, account by account, within all limits.
 *
 * A line that may not send is parked at the limit that it waits for, and is woken when there is room: only as many
 * lines as there is room for, so the cost of a send does not depend on the number of waiting lines. Two invariants
 * ensure that no line is forgotten: 1. While lines are parked at a destination, at least as many other lines are near
 * it as it has room for. 2. While lines are parked for silence, at least as many lines of silent destinations are ready
 * as may be sent. A woken line that may not send, because it now waits for another limit, passes its turn on.
 *
 * A line that waits for its webhook's rate is woken by the clock: `wakeUps` says when, one sleep for both lines.
 */
import type { WebhookId } from "../../../schemas/BrandedIds.ts"
import { type Host, type Kind, kinds, newHost, type WebhookQueue } from "./WebhookQueue.ts"
import { SendRate } from "./SendRate.ts"
import type { SlotLimits } from "./SlotLimits.ts"
import { Turns } from "./Turns.ts"

/** The share of each limit that later tries may use. */
export const laterShare = 0.75
const firstTriesInARow = 7

const shareOf = (kind: Kind): number => kind === "first" ? 1 : laterShare

/** A webhook that `woken` is to be called for at a time. */
export interface WakeUp {
  readonly webhookId: WebhookId
  readonly at: number
}

export class SenderQueues<Task extends { readonly host: string }> {
  private readonly limits: SlotLimits
  private readonly hosts = new Map<string, Host<Task>>()
  private readonly ready = { first: new Turns<WebhookQueue<Task>>(), later: new Turns<WebhookQueue<Task>>() }
  private readonly quiet = { first: new Turns<WebhookQueue<Task>>(), later: new Turns<WebhookQueue<Task>>() }
  /** Maximum number of idle destinations that are remembered as answering. */
  private readonly memory: number
  private readonly sleeps: Array<WakeUp> = []
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

  /** Adds a task after the others of its queue and kind. */
  add(queue: WebhookQueue<Task>, kind: Kind, task: Task): void {
    queue.waiting[kind].push(task)
    if (queue.status[kind] === "none") this.enqueue(queue, kind)
  }

  /** Sets the rate of a queue's webhook, in sends a second; its lines that wait for another rate take turns again. */
  setRate(queue: WebhookQueue<Task>, perSecond: number | null): void {
    if ((queue.rate?.perSecond ?? null) === perSecond) return
    if (perSecond === null) queue.rate = null
    else if (queue.rate === null) queue.rate = new SendRate(perSecond)
    else queue.rate.perSecond = perSecond
    this.unrate(queue)
  }

  /** Removes and returns the wake-ups for which a sleep must be begun. */
  wakeUps(): ReadonlyArray<WakeUp> {
    return this.sleeps.splice(0)
  }

  /** A sleep has ended: the queue's lines that wait for its rate take turns again. */
  woken(queue: WebhookQueue<Task>, at: number, now: number): void {
    if (queue.rate?.wakeAt === at) queue.rate.wakeAt = null
    queue.rate?.forget(now)
    this.unrate(queue)
  }

  /** Has the queue woken at this time, unless it is woken before. */
  wakeAt({ rate, webhookId }: WebhookQueue<Task>, at: number): void {
    if (rate === null || (rate.wakeAt !== null && rate.wakeAt <= at)) return
    rate.wakeAt = at
    this.sleeps.push({ webhookId, at })
  }

  /** Takes the next task that may be sent, and its queue; it counts as active from now on. */
  next(now: number): { readonly queue: WebhookQueue<Task>; readonly task: Task } | undefined {
    const order: ReadonlyArray<Kind> = this.firstInARow < firstTriesInARow ? ["first", "later"] : ["later", "first"]
    for (const kind of order) {
      if (this.active >= this.limits.active * shareOf(kind)) continue
      const queue = this.ready[kind].take((queue) => this.maySend(queue, kind, now))
      if (queue === undefined) continue
      this.firstInARow = kind === "first" ? this.firstInARow + 1 : 0
      return { queue, task: this.start(queue, kind, now) }
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

  /** If the queue's window has room, its lines that waited for it take turns again. */
  widened(queue: WebhookQueue<Task>): void {
    if (queue.active >= queue.window) return
    for (const kind of kinds) if (queue.status[kind] === "window") this.enqueue(queue, kind)
  }

  /** Empties the lines of these queues, which must be all; returns their tasks. */
  drain(queues: Iterable<WebhookQueue<Task>>): ReadonlyArray<Task> {
    const tasks = [...queues].flatMap(({ status, waiting }) => {
      status.first = status.later = "none"
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
  private maySend(queue: WebhookQueue<Task>, kind: Kind, now: number): boolean {
    const host = this.host(queue.waiting[kind][0]!.host)
    const freeAt = queue.rate?.freeAt(now) ?? now
    if (queue.active < queue.window && freeAt <= now && this.hostRoom(host, kind) > 0) {
      if (host.answers || this.silentRoom(kind) > 0) return true
      this.parkSilent(host, queue, kind)
      return false
    }
    host.near[kind]--
    if (queue.active >= queue.window) {
      queue.status[kind] = "window"
      this.wake(host, kind)
    } else if (freeAt > now) {
      queue.status[kind] = "rate"
      this.wakeAt(queue, freeAt)
      this.wake(host, kind)
    } else this.parkAt(host, queue, kind)
    if (!host.answers) this.wakeSilent(kind)
    this.forget(host)
    return false
  }

  private unrate(queue: WebhookQueue<Task>): void {
    for (const kind of kinds) if (queue.status[kind] === "rate") this.enqueue(queue, kind)
  }

  private start(queue: WebhookQueue<Task>, kind: Kind, now: number): Task {
    const task = queue.waiting[kind].shift()!
    const host = this.host(task.host)
    host.near[kind]--
    host.active++
    if (!host.answers) this.silent++
    queue.active++
    queue.rate?.started(now)
    this.active++
    queue.status[kind] = "none"
    if (queue.waiting[kind].length > 0) this.enqueue(queue, kind)
    return task
  }

  /** Lets a line that is near no destination take turns, after the lines that wait for the same limit. */
  private enqueue(queue: WebhookQueue<Task>, kind: Kind): void {
    const host = this.host(queue.waiting[kind][0]!.host)
    if (host.parked[kind] !== undefined) {
      this.parkAt(host, queue, kind)
      this.wake(host, kind)
      return
    }
    host.near[kind]++
    if (host.answers || this.quiet[kind].accounts === 0) return this.readied(queue, kind)
    this.parkSilent(host, queue, kind)
    this.wakeSilent(kind)
  }

  private readied(queue: WebhookQueue<Task>, kind: Kind): void {
    queue.status[kind] = "ready"
    this.ready[kind].add(queue.accountId, queue)
  }

  private parkAt(host: Host<Task>, queue: WebhookQueue<Task>, kind: Kind): void {
    queue.status[kind] = "host"
    const parked = host.parked[kind] ??= new Turns()
    parked.add(queue.accountId, queue)
  }

  /** Parks the queue of a silent destination among those of all silent destinations. */
  private parkSilent(host: Host<Task>, queue: WebhookQueue<Task>, kind: Kind): void {
    queue.status[kind] = "silent"
    this.quiet[kind].add(queue.accountId, queue)
    const quiet = host.quiet[kind] ??= new Set()
    quiet.add(queue)
  }

  /**
   * Wakes as many lines that wait for this destination as it has room for beside the lines near it. If it is silent,
   * they go after the lines of other silent destinations: otherwise its own ending sends would keep those waiting.
   */
  private wake(host: Host<Task>, kind: Kind): void {
    const parked = host.parked[kind]
    if (parked === undefined) return
    while (this.hostRoom(host, kind) > host.near[kind]) {
      const queue = parked.take(() => true)
      if (queue === undefined) break
      host.near[kind]++
      if (host.answers) this.readied(queue, kind)
      else this.parkSilent(host, queue, kind)
    }
    if (parked.accounts === 0) delete host.parked[kind]
    if (!host.answers) this.wakeSilent(kind)
  }

  /** Lets as many lines of silent destinations take turns as silent destinations have room for. */
  private wakeSilent(kind: Kind): void {
    const quiet = this.quiet[kind]
    for (let room = this.silentRoom(kind); room > 0 && quiet.accounts > 0; room--) {
      const queue = quiet.take(() => true)!
      this.host(queue.waiting[kind][0]!.host).quiet[kind]?.delete(queue)
      this.readied(queue, kind)
    }
  }

  /** This destination answers: its lines no longer wait for the limit of silent ones. */
  private unquiet(host: Host<Task>, kind: Kind): void {
    for (const queue of host.quiet[kind] ?? []) {
      this.quiet[kind].delete(queue.accountId, queue)
      this.readied(queue, kind)
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
    if (host === undefined) this.hosts.set(key, host = newHost(key))
    return host
  }

  /** Forgets idle destinations. An unknown one counts as silent, so only answering ones must be remembered. */
  private forget({ active, answers, key, near, parked }: Host<Task>): void {
    const waits = near.first > 0 || near.later > 0 || parked.first !== undefined || parked.later !== undefined
    if (active === 0 && !waits && (!answers || this.hosts.size > this.memory)) this.hosts.delete(key)
  }
}
