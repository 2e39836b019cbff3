/**
 * Decides which delivery may be sent now: adaptive limits and fairness. Pure bookkeeping, no clock and no I/O: `now` is
 * milliseconds of a clock that is never set back.
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
 *
 * A webhook with a rate begins at most so many sends in any second, and claims what it may send within two: more would
 * wait in memory until its lease ends. Its `wakeUps` must be slept for and answered by `woken`.
 */

import type { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Backlog, type Claimable, type Reservation } from "./Backlog.ts"
import { newQueue, type WebhookQueue } from "./WebhookQueue.ts"
import { laterShare, SenderQueues, type WakeUp } from "./SenderQueues.ts"
import { defaultLimits, type SlotLimits } from "./SlotLimits.ts"

const firstWindow = 16
const lastWindow = 128
const reserve = 4
const queueMemory = 20_000
/** For how many seconds of its rate a webhook may have deliveries that wait. */
const rateSeconds = 2
/**
 * How many retries and replays of a backlogged webhook may wait in memory. First tries do not count: while events
 * arrive faster than they are sent, earlier deliveries that were not claimed would otherwise wait for all of them.
 */
const ahead = 32

interface Slotted {
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  readonly host: string
  /** A retry or a replay; first tries are sent before it. */
  readonly later?: boolean
  /** Sends that its webhook allows to begin in a second; null or absent: any number. */
  readonly rate?: number | null
}

export class ConcurrencyLimiter<Task extends Slotted> {
  private readonly limits: SlotLimits
  private readonly queues = new Map<WebhookId, WebhookQueue<Task>>()
  private readonly lines: SenderQueues<Task>
  private readonly backlog = new Backlog(queueMemory)
  private claimed = 0
  private unsettled = 0
  private closed = false

  constructor(limits: SlotLimits = defaultLimits) {
    this.limits = limits
    this.lines = new SenderQueues(limits, queueMemory)
  }

  /** `claimed`: deliveries that wait or are on the wire; `active`: those on the wire. */
  get load(): { readonly claimed: number; readonly active: number } {
    return { claimed: this.claimed, active: this.lines.sending }
  }

  /** Entries in memory: webhooks, destinations, and webhooks with a backlog. */
  get sizes(): { readonly queues: number; readonly hosts: number; readonly backlogged: number } {
    return { queues: this.queues.size, hosts: this.lines.destinations, backlogged: this.backlog.size }
  }

  /** How many deliveries may be claimed now, all webhooks together. */
  get spare(): number {
    return this.closed ? 0 : Math.max(0, this.limits.claimed - this.claimed - this.unsettled)
  }

  /** Sets the number of unsettled results, and whether nothing may be claimed until there are fewer. */
  setUnsettled(unsettled: number, closed: boolean): void {
    this.unsettled = unsettled
    this.closed = closed
  }

  /** How many deliveries of this webhook may be claimed now. */
  room(webhookId: WebhookId): number {
    const queue = this.queues.get(webhookId)
    return Math.max(0, Math.min(queue === undefined ? firstWindow : this.ownRoom(queue), this.spare))
  }

  /** Reserves up to `wanted` claims; returns how many. Each must be followed by `add` or `drop`. */
  reserve(webhookId: WebhookId, accountId: AccountId, wanted: number): number {
    const got = Math.min(wanted, Math.max(0, this.room(webhookId) - this.keptFor(webhookId)))
    if (got > 0) {
      this.queueOf(webhookId, accountId).claimed += got
      this.claimed += got
    }
    if (got < wanted) this.markBacklogged(webhookId, accountId)
    return got
  }

  /** Gives back `count` reserved claims that were not used. */
  drop(webhookId: WebhookId, count: number): void {
    const queue = this.queues.get(webhookId)
    if (queue === undefined) return
    queue.claimed -= count
    this.claimed -= count
    this.changed(queue)
    this.forget(queue)
  }

  /** Queues a claimed task after the others of its webhook and kind. */
  add(task: Task): void {
    const queue = this.queueOf(task.webhookId, task.accountId)
    this.lines.setRate(queue, task.rate ?? null)
    this.lines.add(queue, task.later === true ? "later" : "first", task)
  }

  /** The next task that may be sent, or undefined; it counts as active from now on. */
  next(now: number): Task | undefined {
    const next = this.lines.next(now)
    if (next === undefined) return undefined
    this.changed(next.queue)
    return next.task
  }

  /** Removes and returns the wake-ups of webhooks that wait for their rate; each needs one sleep. */
  wakeUps(): ReadonlyArray<WakeUp> {
    return this.lines.wakeUps()
  }

  /** The sleep for a wake-up has ended; `next` may have a task. */
  woken({ at, webhookId }: WakeUp, now: number): void {
    const queue = this.queues.get(webhookId)
    if (queue === undefined) return
    this.lines.woken(queue, at, now)
    this.forget(queue)
  }

  /** Ends an active task. `answered`: false for silence (timeout, no connection), null if nothing is known. */
  done(task: Task, answered: boolean | null): void {
    this.claimed--
    // The destination before the webhook: other webhooks that wait for this destination have waited longer.
    this.lines.ended(task.host, answered)
    const queue = this.queues.get(task.webhookId)
    if (queue !== undefined) {
      queue.active--
      queue.claimed--
      if (answered !== null) {
        queue.answers = answered
        queue.window = answered ? Math.min(lastWindow, queue.window + 1) : Math.max(1, queue.window >> 1)
      }
      this.lines.widened(queue)
      this.changed(queue)
      this.forget(queue)
    }
  }

  /** Removes and returns all waiting tasks, which will not be sent by this process. */
  drain(): ReadonlyArray<Task> {
    const tasks = this.lines.drain(this.queues.values())
    for (const task of tasks) this.drop(task.webhookId, 1)
    return tasks
  }

  /** Marks a webhook with more due deliveries than it could claim. Beyond 20,000 webhooks, the scan finds it again. */
  markBacklogged(webhookId: WebhookId, accountId: AccountId): void {
    this.backlog.add(webhookId, accountId)
  }

  /** Whether `topUp` may find a backlogged webhook with free slots. */
  get mayTopUp(): boolean {
    return this.backlog.mayFind
  }

  /**
   * Reserves up to `most` claims, never the last quarter of all, for backlogged webhooks with free slots, account by
   * account; these are then no longer marked. After the claim, `markBacklogged` marks those that still have a backlog.
   */
  topUp(most: number): ReadonlyArray<Reservation> {
    const free = Math.min(most, this.spare - Math.ceil(this.limits.claimed * (1 - laterShare)))
    const reserved = this.backlog.take(free, (webhookId) => this.claimable(webhookId))
    for (const { accountId, count, webhookId } of reserved) {
      this.queueOf(webhookId, accountId).claimed += count
      this.claimed += count
    }
    return reserved
  }

  /** How many deliveries a backlogged webhook may claim: none before there is room for a whole batch. */
  private claimable(webhookId: WebhookId): Claimable {
    const queue = this.queues.get(webhookId)
    if (queue === undefined) return { now: this.room(webhookId), skip: false }
    const own = this.ownClaimable(queue)
    const enough = this.spare >= this.batchOf(queue)
    return { now: enough ? Math.min(own, this.spare) : 0, skip: own === 0 }
  }

  /** How many this webhook could claim if the rest of the process were idle. */
  private ownClaimable(queue: WebhookQueue<Task>): number {
    const room = this.ownRoom(queue)
    const waiting = queue.waiting.later.length
    return waiting > ahead >> 1 || room < this.batchOf(queue) ? 0 : Math.min(room, ahead - waiting)
  }

  /**
   * The slots that first tries leave free: one claim, while a webhook with a rate has a backlog. Otherwise more first
   * tries than the rate would take each slot that a send frees, and retries and replays would never be claimed.
   */
  private keptFor(webhookId: WebhookId): number {
    const queue = this.queues.get(webhookId)
    return queue === undefined || queue.rate === null || !this.backlog.has(webhookId) ? 0 : this.batchOf(queue)
  }

  /** The smallest claim that is worth a statement: half a window, or what the rate lets begin in a second. */
  private batchOf({ rate, window }: WebhookQueue<Task>): number {
    return Math.max(1, Math.min(window >> 1, rate?.perSecond ?? Infinity))
  }

  private ownRoom({ active, answers, claimed, rate, window }: WebhookQueue<Task>): number {
    const own = window * (answers ? reserve : 1) - claimed
    return rate === null ? own : Math.min(own, rateSeconds * rate.perSecond - (claimed - active))
  }

  /** Lets a skipped webhook take turns again if it can claim now. */
  private changed(queue: WebhookQueue<Task>): void {
    const { webhookId } = queue
    if (this.backlog.isSkipped(webhookId) && this.ownClaimable(queue) > 0) this.backlog.woken(webhookId)
  }

  private queueOf(webhookId: WebhookId, accountId: AccountId): WebhookQueue<Task> {
    let queue = this.queues.get(webhookId)
    if (queue === undefined) this.queues.set(webhookId, queue = newQueue(webhookId, accountId, firstWindow))
    return queue
  }

  /**
   * Forgets an idle webhook once there are too many; it starts again with the first window. The starts that its rate
   * counts are kept for their second.
   */
  private forget(queue: WebhookQueue<Task>): void {
    if (queue.claimed > 0) return
    const countsUntil = queue.rate?.countsUntil ?? null
    if (countsUntil !== null) this.lines.wakeAt(queue, countsUntil)
    else if (this.queues.size > queueMemory) this.queues.delete(queue.webhookId)
  }
}
