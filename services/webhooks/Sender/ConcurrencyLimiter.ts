/**
 * Decides which delivery may be sent now: adaptive limits and fairness. Pure bookkeeping, no clock and no I/O.
 *
 * A *claimed* delivery is in memory; an *active* one is on the wire. Each webhook has a window of active sends: it
 * starts at 16, grows by one with each answer up to 128, halves on silence, and is never below 1. Beyond the window a
 * webhook may claim a small reserve, and only while its endpoint answers; a slow endpoint claims only what it can send.
 * A destination that does not answer has at most 64 active sends, and all such destinations together at most half of
 * the process, so that destinations that answer always get a slot. Waiting webhooks take turns, account by account.
 *
 * A delivery with an unsettled result counts as claimed, because it is in memory and has a lease.
 *
 * First tries go before `later` deliveries (retries and replays): while first tries wait, one of eight sends may be a
 * later one, and a quarter of each limit is reserved for first tries, so that none waits behind a backlog of retries.
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
 * How many retries and replays of a backlogged webhook may wait in memory. First tries do not count: while events
 * arrive faster than they are sent, earlier deliveries that were not claimed would otherwise wait for all of them.
 */
const ahead = 32

interface Slotted {
  readonly webhookId: string
  readonly accountId: string
  readonly host: string
  /** A retry or a replay; first tries are sent before it. */
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

  /** `claimed`: deliveries that wait or are on the wire; `active`: those on the wire. */
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

  /** Sets the number of unsettled results, and whether nothing may be claimed until there are fewer. */
  hold(unsettled: number, closed: boolean): void {
    this.unsettled = unsettled
    this.closed = closed
  }

  /** How many deliveries of this webhook may be claimed now. */
  room(webhookId: string): number {
    const lane = this.lanes.get(webhookId)
    return Math.max(0, Math.min(lane === undefined ? firstWindow : this.ownRoom(lane), this.spare))
  }

  /** Reserves up to `wanted` claims; returns how many. Each must be followed by `add` or `drop`. */
  reserve(webhookId: string, accountId: string, wanted: number): number {
    const got = Math.min(wanted, this.room(webhookId))
    if (got > 0) {
      this.lane(webhookId, accountId).claimed += got
      this.claimed += got
    }
    if (got < wanted) this.markHungry(webhookId, accountId)
    return got
  }

  /** Gives back `count` reserved claims that were not used. */
  drop(webhookId: string, count: number): void {
    const lane = this.lanes.get(webhookId)
    if (lane === undefined) return
    lane.claimed -= count
    this.claimed -= count
    this.changed(lane)
    this.forget(lane)
  }

  /** Queues a claimed task after the others of its webhook and kind. */
  add(task: Task): void {
    this.lines.add(this.lane(task.webhookId, task.accountId), task.later === true ? "later" : "first", task)
  }

  /** The next task that may be sent, or undefined; it counts as active from now on. */
  next(): Task | undefined {
    const next = this.lines.next()
    if (next === undefined) return undefined
    this.changed(next.lane)
    return next.task
  }

  /** Ends an active task. `answered`: false for silence (timeout, no connection), null if nothing is known. */
  done(task: Task, answered: boolean | null): void {
    this.claimed--
    // The destination before the webhook: other webhooks that wait for this destination have waited longer.
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

  /** Removes and returns all waiting tasks, which will not be sent by this process. */
  drain(): ReadonlyArray<Task> {
    const tasks = this.lines.drain(this.lanes.values())
    for (const task of tasks) this.drop(task.webhookId, 1)
    return tasks
  }

  /** Marks a webhook with more due deliveries than it could claim. Beyond 20,000 webhooks, the scan finds it again. */
  markHungry(webhookId: string, accountId: string): void {
    this.backlog.add(webhookId, accountId)
  }

  /** Whether `feed` may find a backlogged webhook with free slots. */
  get hasHungry(): boolean {
    return this.backlog.mayFind
  }

  /**
   * Reserves up to `most` claims, never the last quarter of all, for backlogged webhooks with free slots, account by
   * account; these are then no longer marked. After the claim, `markHungry` marks those that still have a backlog.
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

  /** How many deliveries a backlogged webhook may claim: none before there is room for a whole batch. */
  private appetite(webhookId: string): Appetite {
    const lane = this.lanes.get(webhookId)
    if (lane === undefined) return { now: this.room(webhookId), sated: false }
    const own = this.ownAppetite(lane)
    const enough = this.spare >= Math.max(1, lane.window >> 1)
    return { now: enough ? Math.min(own, this.spare) : 0, sated: own === 0 }
  }

  /** How many this webhook could claim if the rest of the process were idle. */
  private ownAppetite(lane: Lane<Task>): number {
    const room = this.ownRoom(lane)
    const waiting = lane.waiting.later.length
    return waiting > ahead >> 1 || room < Math.max(1, lane.window >> 1) ? 0 : Math.min(room, ahead - waiting)
  }

  private ownRoom({ answers, claimed, window }: Lane<Task>): number {
    return window * (answers ? reserve : 1) - claimed
  }

  /** Lets a skipped webhook take turns again if it can claim now. */
  private changed(lane: Lane<Task>): void {
    const { webhookId } = lane
    if (this.backlog.isSated(webhookId) && this.ownAppetite(lane) > 0) this.backlog.woken(webhookId)
  }

  private lane(webhookId: string, accountId: string): Lane<Task> {
    let lane = this.lanes.get(webhookId)
    if (lane === undefined) this.lanes.set(webhookId, lane = laneOf(webhookId, accountId, firstWindow))
    return lane
  }

  /** Forgets an idle webhook once there are too many; it starts again with the first window. */
  private forget(lane: Lane<Task>): void {
    if (lane.claimed === 0 && this.lanes.size > laneMemory) this.lanes.delete(lane.webhookId)
  }
}
