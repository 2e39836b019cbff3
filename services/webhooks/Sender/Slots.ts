/**
 * Who may send now (RULES, Deliveries: adaptive cap, fairness). Pure bookkeeping, no clock and no I/O.
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

import { defaultLimits, type SlotLimits } from "./SlotLimits.ts"

const firstWindow = 16
const lastWindow = 128
const reserve = 4
const laneMemory = 20_000
/** Of every limit, what may be used for what is later. */
const laterShare = 0.75
const firstTriesInARow = 7
/** What a webhook that is fed may have in memory, waiting for the wire. */
const ahead = 32

type Kind = "first" | "later"

interface Host {
  active: number
  answers: boolean
}

export interface Lane<Task> {
  readonly webhookId: string
  readonly accountId: string
  window: number
  claimed: number
  active: number
  answers: boolean
  readonly waiting: Readonly<Record<Kind, Array<Task>>>
}

type Turns<Task> = Map<string, Set<Lane<Task>>>

interface Slotted {
  readonly webhookId: string
  readonly accountId: string
  readonly host: string
  /** No first try: it goes after those. */
  readonly later?: boolean
}

/** Claims that were reserved for a webhook that has more due than it could claim. */
export interface Fed {
  readonly webhookId: string
  readonly accountId: string
  readonly count: number
}

export class Slots<Task extends Slotted> {
  private readonly limits: SlotLimits
  private readonly lanes = new Map<string, Lane<Task>>()
  private readonly hosts = new Map<string, Host>()
  private readonly turns: Readonly<Record<Kind, Turns<Task>>> = { first: new Map(), later: new Map() }
  /** By webhook its account, in the order in which they are fed. */
  private readonly hungry = new Map<string, string>()
  private firstInARow = 0
  private active = 0
  private claimed = 0
  private silent = 0
  private unsettled = 0
  private closed = false

  constructor(limits: SlotLimits = defaultLimits) {
    this.limits = limits
  }

  /** Deliveries that wait or are on the wire, and of these on the wire. */
  get load(): { readonly claimed: number; readonly active: number } {
    return { claimed: this.claimed, active: this.active }
  }

  /** Entries in memory: webhooks, destinations, and webhooks with a backlog. */
  get sizes(): { readonly lanes: number; readonly hosts: number; readonly hungry: number } {
    return { lanes: this.lanes.size, hosts: this.hosts.size, hungry: this.hungry.size }
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
    const own = lane === undefined ? firstWindow : lane.window * (lane.answers ? reserve : 1) - lane.claimed
    return Math.max(0, Math.min(own, this.spare))
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
    this.forget(lane)
  }

  /** Queues a claimed task behind the others of its webhook and kind. */
  add(task: Task): void {
    const kind = task.later === true ? "later" : "first"
    const lane = this.lane(task.webhookId, task.accountId)
    lane.waiting[kind].push(task)
    const turn = this.turns[kind].get(lane.accountId)
    if (turn === undefined) this.turns[kind].set(lane.accountId, new Set([lane]))
    else turn.add(lane)
  }

  /** The next task that may go on the wire, or undefined; it counts as active from here on. */
  next(): Task | undefined {
    const order: ReadonlyArray<Kind> = this.firstInARow < firstTriesInARow ? ["first", "later"] : ["later", "first"]
    for (const kind of order) {
      const task = this.pick(kind)
      if (task === undefined) continue
      this.firstInARow = kind === "first" ? this.firstInARow + 1 : 0
      return task
    }
    return undefined
  }

  /** Ends an active task. `answered` is false for silence (timeout, no connection), null where nothing was learned. */
  done(task: Task, answered: boolean | null): void {
    const lane = this.lanes.get(task.webhookId)
    const host = this.hosts.get(task.host)
    if (host !== undefined) {
      if (!host.answers) this.silent--
      if (answered !== null && answered !== host.answers) {
        host.answers = answered
        this.silent += answered ? 1 - host.active : host.active - 1
      }
      host.active--
      // A silent one starts like one that is not known; that one answers is what must be remembered while it rests.
      if (host.active === 0 && (!host.answers || this.hosts.size > laneMemory)) this.hosts.delete(task.host)
    }
    this.active--
    this.claimed--
    if (lane === undefined) return
    lane.active--
    lane.claimed--
    if (answered !== null) {
      lane.answers = answered
      lane.window = answered ? Math.min(lastWindow, lane.window + 1) : Math.max(1, lane.window >> 1)
    }
    this.forget(lane)
  }

  /** Empties every waiting line: the tasks that were claimed and will not be sent from here. */
  drain(): ReadonlyArray<Task> {
    const tasks = [...this.lanes.values()].flatMap(({ waiting }) => [
      ...waiting.first.splice(0),
      ...waiting.later.splice(0),
    ])
    this.turns.first.clear()
    this.turns.later.clear()
    for (const task of tasks) this.drop(task.webhookId, 1)
    return tasks
  }

  /** Remembers that this webhook has more due than it could claim; beyond 20,000 of them the scan finds it again. */
  markHungry(webhookId: string, accountId: string): void {
    if (this.hungry.size < laneMemory && !this.hungry.has(webhookId)) this.hungry.set(webhookId, accountId)
  }

  get hasHungry(): boolean {
    return this.hungry.size > 0
  }

  /**
   * Reserves up to `most` claims, never the last quarter of all, for the hungry webhooks that have room again: account by
   * account, and those that were fed wait for their next turn. Whoever claims says with `markHungry` who still is.
   */
  feed(most: number): ReadonlyArray<Fed> {
    const free = Math.min(most, this.spare - Math.ceil(this.limits.claimed * (1 - laterShare)))
    const lines = new Map<string, Array<string>>()
    for (const [webhookId, accountId] of this.hungry) {
      if (this.appetite(webhookId) === 0) continue
      const line = lines.get(accountId)
      if (line === undefined) lines.set(accountId, [webhookId])
      else line.push(webhookId)
    }
    const fed: Array<Fed> = []
    let left = free
    while (left > 0 && lines.size > 0) {
      const share = Math.max(1, Math.floor(left / lines.size))
      for (const [accountId, line] of lines) {
        const webhookId = line.shift()
        if (line.length === 0) lines.delete(accountId)
        if (webhookId === undefined || left === 0) continue
        const count = Math.min(share, left, this.appetite(webhookId))
        this.hungry.delete(webhookId)
        const lane = this.lane(webhookId, accountId)
        lane.claimed += count
        this.claimed += count
        left -= count
        fed.push({ webhookId, accountId, count })
      }
    }
    return fed
  }

  /** How much a hungry webhook would take now: none before there is enough room for a bite. */
  private appetite(webhookId: string): number {
    const lane = this.lanes.get(webhookId)
    const room = this.room(webhookId)
    if (lane === undefined) return room
    const waiting = lane.waiting.first.length + lane.waiting.later.length
    return waiting > ahead >> 1 || room < Math.max(1, lane.window >> 1) ? 0 : Math.min(room, ahead - waiting)
  }

  private pick(kind: Kind): Task | undefined {
    const share = kind === "first" ? 1 : laterShare
    if (this.active >= this.limits.active * share) return undefined
    const turns = this.turns[kind]
    for (const [accountId, turn] of turns) {
      for (const lane of turn) {
        const task = lane.waiting[kind][0]!
        if (lane.active >= lane.window || !this.admits(task.host, share)) continue
        lane.waiting[kind].shift()
        // The account and the webhook that were served go to the end of their lines.
        turn.delete(lane)
        if (lane.waiting[kind].length > 0) turn.add(lane)
        turns.delete(accountId)
        if (turn.size > 0) turns.set(accountId, turn)
        this.start(lane, task.host)
        return task
      }
    }
    return undefined
  }

  private admits(key: string, share: number): boolean {
    const host = this.hosts.get(key)
    if (host === undefined || !host.answers) {
      return (host?.active ?? 0) < this.limits.perSilentHost * share &&
        this.silent < Math.floor(this.limits.active / 2) * share
    }
    return host.active < this.limits.perHost * share
  }

  private start(lane: Lane<Task>, key: string): void {
    let host = this.hosts.get(key)
    if (host === undefined) this.hosts.set(key, host = { active: 0, answers: false })
    host.active++
    if (!host.answers) this.silent++
    lane.active++
    this.active++
  }

  private lane(webhookId: string, accountId: string): Lane<Task> {
    let lane = this.lanes.get(webhookId)
    if (lane === undefined) {
      lane = {
        webhookId,
        accountId,
        window: firstWindow,
        claimed: 0,
        active: 0,
        answers: false,
        waiting: { first: [], later: [] },
      }
      this.lanes.set(webhookId, lane)
    }
    return lane
  }

  /** An idle lane is dropped once there are too many: it starts again at the first window. */
  private forget(lane: Lane<Task>): void {
    if (lane.claimed === 0 && this.lanes.size > laneMemory) this.lanes.delete(lane.webhookId)
  }
}
