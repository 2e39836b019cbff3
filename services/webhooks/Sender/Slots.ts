/**
 * Who may send now (RULES, Deliveries: adaptive cap, fairness). Pure bookkeeping, no clock and no I/O.
 *
 * A *claimed* delivery is in memory; an *active* one is on the wire. Each webhook has a window of active sends that
 * starts at 16, grows by one on each answer up to 128, halves on silence, and is never below 1. What it may claim
 * beyond the window is a small reserve, and only while its endpoint answers: a slow one claims what it can send.
 * A destination that does not answer holds at most 64 sends, and all such destinations together at most half of the
 * process, so a free slot is always left for one that does. Waiting webhooks take turns, account by account.
 */

export interface SlotLimits {
  /** Sends on the wire at once, all webhooks together. */
  readonly active: number
  /** Deliveries in memory at once, on the wire or waiting. */
  readonly claimed: number
  /** Sends on the wire to one `host:port`. */
  readonly perHost: number
  /** Sends on the wire to one `host:port` that does not answer. */
  readonly perSilentHost: number
}

export const defaultLimits: SlotLimits = { active: 512, claimed: 4096, perHost: 64, perSilentHost: 64 }

const firstWindow = 16
const lastWindow = 128
const reserve = 4
const laneMemory = 20_000

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
  readonly waiting: Array<Task>
}

export class Slots<Task extends { readonly webhookId: string; readonly accountId: string; readonly host: string }> {
  private readonly limits: SlotLimits
  private readonly lanes = new Map<string, Lane<Task>>()
  private readonly hosts = new Map<string, Host>()
  private readonly turns = new Map<string, Set<Lane<Task>>>()
  private readonly hungry = new Set<string>()
  private active = 0
  private claimed = 0
  private silent = 0

  constructor(limits: SlotLimits = defaultLimits) {
    this.limits = limits
  }

  /** Deliveries in memory, and of these on the wire. */
  get load(): { readonly claimed: number; readonly active: number } {
    return { claimed: this.claimed, active: this.active }
  }

  /** True while nothing more can be claimed for anyone. */
  get full(): boolean {
    return this.claimed >= this.limits.claimed
  }

  /** How many deliveries of this webhook may be claimed now. */
  room(webhookId: string): number {
    const lane = this.lanes.get(webhookId)
    const own = lane === undefined ? firstWindow : lane.window * (lane.answers ? reserve : 1) - lane.claimed
    return Math.max(0, Math.min(own, this.limits.claimed - this.claimed))
  }

  /** Takes up to `wanted` claims; gives how many it got. Each must be followed by `add` or `drop`. */
  reserve(webhookId: string, accountId: string, wanted: number): number {
    const got = Math.min(wanted, this.room(webhookId))
    if (got > 0) {
      this.lane(webhookId, accountId).claimed += got
      this.claimed += got
    }
    if (got < wanted) this.hungry.add(webhookId)
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

  /** Queues a claimed task behind the others of its webhook. */
  add(task: Task): void {
    const lane = this.lane(task.webhookId, task.accountId)
    lane.waiting.push(task)
    const turn = this.turns.get(lane.accountId)
    if (turn === undefined) this.turns.set(lane.accountId, new Set([lane]))
    else turn.add(lane)
  }

  /** The next task that may go on the wire, or undefined; it counts as active from here on. */
  next(): Task | undefined {
    if (this.active >= this.limits.active) return undefined
    for (const [accountId, turn] of this.turns) {
      for (const lane of turn) {
        const task = lane.waiting[0]!
        if (lane.active >= lane.window || !this.admits(task.host)) continue
        lane.waiting.shift()
        this.rotate(accountId, turn, lane)
        this.start(lane, task.host)
        return task
      }
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
    const tasks = [...this.lanes.values()].flatMap((lane) => lane.waiting.splice(0))
    this.turns.clear()
    for (const task of tasks) this.drop(task.webhookId, 1)
    return tasks
  }

  /** Remembers that this webhook has more due than it could claim. */
  markHungry(webhookId: string): void {
    this.hungry.add(webhookId)
  }

  get hasHungry(): boolean {
    return this.hungry.size > 0
  }

  /** The hungry webhooks that have room again, each told once. */
  takeHungry(): ReadonlyArray<string> {
    const fed: Array<string> = []
    for (const webhookId of this.hungry) {
      const lane = this.lanes.get(webhookId)
      if (this.room(webhookId) < (lane === undefined ? 1 : Math.max(1, lane.window >> 1))) continue
      this.hungry.delete(webhookId)
      fed.push(webhookId)
    }
    return fed
  }

  private admits(key: string): boolean {
    const host = this.hosts.get(key)
    if (host === undefined || !host.answers) {
      return (host?.active ?? 0) < this.limits.perSilentHost && this.silent < this.limits.active >> 1
    }
    return host.active < this.limits.perHost
  }

  private start(lane: Lane<Task>, key: string): void {
    let host = this.hosts.get(key)
    if (host === undefined) this.hosts.set(key, host = { active: 0, answers: false })
    host.active++
    if (!host.answers) this.silent++
    lane.active++
    this.active++
  }

  /** The account and the webhook that were served go to the end of their lines. */
  private rotate(accountId: string, turn: Set<Lane<Task>>, lane: Lane<Task>): void {
    turn.delete(lane)
    if (lane.waiting.length > 0) turn.add(lane)
    this.turns.delete(accountId)
    if (turn.size > 0) this.turns.set(accountId, turn)
  }

  private lane(webhookId: string, accountId: string): Lane<Task> {
    let lane = this.lanes.get(webhookId)
    if (lane === undefined) {
      lane = { webhookId, accountId, window: firstWindow, claimed: 0, active: 0, answers: false, waiting: [] }
      this.lanes.set(webhookId, lane)
    }
    return lane
  }

  /** An idle lane is dropped once there are too many: it starts again at the first window. */
  private forget(lane: Lane<Task>): void {
    if (lane.claimed === 0 && this.lanes.size > laneMemory) this.lanes.delete(lane.webhookId)
  }
}
