/**
 * Which delivery may be sent now (adaptive cap, fairness). Pure bookkeeping, no clock and no I/O.
 *
 * A *claimed* delivery is in memory; an *active* one is on the wire. Each webhook has a window of active sends that
 * starts at 16, grows by one on each answer up to 128, halves on silence, and is never below 1. What it may claim
 * beyond the window is a small reserve, and only while its endpoint answers: a slow one claims what it can send.
 * A destination that does not answer holds at most 64 sends, and all such destinations together at most half of the
 * process, so a free slot is always left for one that does. Waiting webhooks take turns, account by account.
 *
 * A delivery whose result is not settled takes room as a claim does, because it is in memory and under a lease like one.
 *
 * First tries go before what is `later`, a retry or a replay: of eight sends one may be later while first tries wait,
 * and a quarter of every limit is for first tries alone, so that none waits behind somebody's mountain of retries.
 */

import { type Appetite, Backlog, type Fed } from "./Backlog.ts"
import { type Lane, laneOf } from "./SenderLanes.ts"
import { laterShare, SenderQueues } from "./SenderQueues.ts"
import { defaultLimits, type SlotLimits } from "./SlotLimits.ts"

const firstWindow = 16
const lastWindow = 128
const reserve = 4
const laneMemory = 20_000
/**
 * Retries and replays of a webhook that is fed which may wait for the wire. First tries do not count: while events come
 * faster than they go, what came first and found no room would otherwise wait for the last of them.
 */
const ahead = 32

interface Slotted {
  readonly webhookId: string
  readonly accountId: string
  readonly host: string
  /** No first try: it goes after those. */
  readonly later?: boolean
}

export class ConcurrencyLimiter<Task extends Slotted> {
  private readonly limits: SlotLimits
  private readonly lanes = new Map<string, Lane<Task>>()
  private readonly lines: SenderQueues<Task>
  private readonly backlog = new Backlog(laneMemory)
  private claimed = 0
  private unsettled = 0
  private closed = false

  constructor(limits: SlotLimits = defaultLimits) {
    this.limits = limits
    this.lines = new SenderQueues(limits, laneMemory)
  }

  /** Deliveries that wait or are on the wire, and of these on the wire. */
  get load(): { readonly claimed: number; readonly active: number } {
    return { claimed: this.claimed, active: this.lines.sending }
  }

  /** Entries in memory: webhooks, destinations, and webhooks with a backlog. */
  get sizes(): { readonly lanes: number; readonly hosts: number; readonly hungry: number } {
    return { lanes: this.lanes.size, hosts: this.lines.destinations, hungry: this.backlog.size }
  }

  /** How many deliveries may be claimed now, all webhooks together. */
  get spare(): number {
    return this.closed ? 0 : Math.max(0, this.limits.claimed - this.claimed - this.unsettled)
  }

  /** Takes how many results are not settled, and whether nothing may be claimed until there are fewer. */
  hold(unsettled: number, closed: boolean): void {
    this.unsettled = unsettled
    this.closed = closed
  }

  /** How many deliveries of this webhook may be claimed now. */
  room(webhookId: string): number {
    const lane = this.lanes.get(webhookId)
    return Math.max(0, Math.min(lane === undefined ? firstWindow : this.ownRoom(lane), this.spare))
  }

  /** Takes up to `wanted` claims; gives how many it got. Each must be followed by `add` or `drop`. */
  reserve(webhookId: string, accountId: string, wanted: number): number {
    const got = Math.min(wanted, this.room(webhookId))
    if (got > 0) {
      this.lane(webhookId, accountId).claimed += got
      this.claimed += got
    }
    if (got < wanted) this.markHungry(webhookId, accountId)
    return got
  }

  /** Gives back `count` claims that were reserved and came to nothing. */
  drop(webhookId: string, count: number): void {
    const lane = this.lanes.get(webhookId)
    if (lane === undefined) return
    lane.claimed -= count
    this.claimed -= count
    this.changed(lane)
    this.forget(lane)
  }

  /** Queues a claimed task behind the others of its webhook and kind. */
  add(task: Task): void {
    this.lines.add(this.lane(task.webhookId, task.accountId), task.later === true ? "later" : "first", task)
  }

  /** The next task that may go on the wire, or undefined; it counts as active from here on. */
  next(): Task | undefined {
    const next = this.lines.next()
    if (next === undefined) return undefined
    this.changed(next.lane)
    return next.task
  }

  /** Ends an active task. `answered` is false for silence (timeout, no connection), null where nothing was learned. */
  done(task: Task, answered: boolean | null): void {
    this.claimed--
    // Before its webhook: the others that wait for this destination have waited longer.
    this.lines.ended(task.host, answered)
    const lane = this.lanes.get(task.webhookId)
    if (lane !== undefined) {
      lane.active--
      lane.claimed--
      if (answered !== null) {
        lane.answers = answered
        lane.window = answered ? Math.min(lastWindow, lane.window + 1) : Math.max(1, lane.window >> 1)
      }
      this.lines.widened(lane)
      this.changed(lane)
      this.forget(lane)
    }
  }

  /** Empties every waiting line: the tasks that were claimed and will not be sent from here. */
  drain(): ReadonlyArray<Task> {
    const tasks = this.lines.drain(this.lanes.values())
    for (const task of tasks) this.drop(task.webhookId, 1)
    return tasks
  }

  /** Remembers that this webhook has more due than it could claim; beyond 20,000 of them the scan finds it again. */
  markHungry(webhookId: string, accountId: string): void {
    this.backlog.add(webhookId, accountId)
  }

  /** Whether `feed` may find a webhook with a backlog and room. */
  get hasHungry(): boolean {
    return this.backlog.mayFind
  }

  /**
   * Reserves up to `most` claims, never the last quarter of all, for the hungry webhooks that have room again: account by
   * account, and those that were fed wait for their next turn. `markHungry` says after a claim which of them still are.
   */
  feed(most: number): ReadonlyArray<Fed> {
    const free = Math.min(most, this.spare - Math.ceil(this.limits.claimed * (1 - laterShare)))
    const fed = this.backlog.feed(free, (webhookId) => this.appetite(webhookId))
    for (const { accountId, count, webhookId } of fed) {
      this.lane(webhookId, accountId).claimed += count
      this.claimed += count
    }
    return fed
  }

  /** How much a hungry webhook would take: none before there is enough room for a bite. */
  private appetite(webhookId: string): Appetite {
    const lane = this.lanes.get(webhookId)
    if (lane === undefined) return { now: this.room(webhookId), sated: false }
    const own = this.ownAppetite(lane)
    const enough = this.spare >= Math.max(1, lane.window >> 1)
    return { now: enough ? Math.min(own, this.spare) : 0, sated: own === 0 }
  }

  /** What this webhook would take if all of the process were free. */
  private ownAppetite(lane: Lane<Task>): number {
    const room = this.ownRoom(lane)
    const waiting = lane.waiting.later.length
    return waiting > ahead >> 1 || room < Math.max(1, lane.window >> 1) ? 0 : Math.min(room, ahead - waiting)
  }

  private ownRoom({ answers, claimed, window }: Lane<Task>): number {
    return window * (answers ? reserve : 1) - claimed
  }

  /** Looks whether a backlog that had no room has some now. */
  private changed(lane: Lane<Task>): void {
    const { webhookId } = lane
    if (this.backlog.isSated(webhookId) && this.ownAppetite(lane) > 0) this.backlog.woken(webhookId)
  }

  private lane(webhookId: string, accountId: string): Lane<Task> {
    let lane = this.lanes.get(webhookId)
    if (lane === undefined) this.lanes.set(webhookId, lane = laneOf(webhookId, accountId, firstWindow))
    return lane
  }

  /** An idle lane is dropped once there are too many: it starts again at the first window. */
  private forget(lane: Lane<Task>): void {
    if (lane.claimed === 0 && this.lanes.size > laneMemory) this.lanes.delete(lane.webhookId)
  }
}
