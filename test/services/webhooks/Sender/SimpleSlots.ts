/** A simple model of ConcurrencyLimiter: finds the next task by checking all waiting lines each time. */
import type { AccountId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import type { SlotLimits } from "../../../../services/webhooks/Sender/SlotLimits.ts"

export interface Job {
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  readonly host: string
  readonly later?: boolean
  readonly rate?: number | null
}

type Kind = "first" | "later"

interface Line {
  readonly waiting: Record<Kind, Array<Job>>
  active: number
  window: number
  rate: number | null
  /** When its sends began, all of them. */
  readonly starts: Array<number>
}

const newLine = (): Line => ({ waiting: { first: [], later: [] }, active: 0, window: 16, rate: null, starts: [] })

export class SimpleSlots {
  readonly hosts = new Map<string, { active: number; answers: boolean }>()
  private readonly lines = new Map<string, Line>()
  private readonly turns = { first: new Map<string, Set<Line>>(), later: new Map<string, Set<Line>>() }
  private firstInARow = 0
  private active = 0
  private readonly limits: SlotLimits

  constructor(limits: SlotLimits) {
    this.limits = limits
  }

  add(job: Job): void {
    const kind = job.later === true ? "later" : "first"
    const line = this.lines.get(job.webhookId) ?? newLine()
    const rate = job.rate ?? null
    // Starts count from the time on at which there is a rate.
    if (line.rate === null || rate === null) line.starts.length = 0
    line.rate = rate
    this.lines.set(job.webhookId, line)
    line.waiting[kind].push(job)
    const turn = this.turns[kind].get(job.accountId)
    if (turn === undefined) this.turns[kind].set(job.accountId, new Set([line]))
    else turn.add(line)
  }

  next(now: number): Job | undefined {
    for (const kind of this.firstInARow < 7 ? ["first", "later"] as const : ["later", "first"] as const) {
      const job = this.pick(kind, now)
      if (job === undefined) continue
      this.firstInARow = kind === "first" ? this.firstInARow + 1 : 0
      return job
    }
    return undefined
  }

  /** Whether this task may be sent now. */
  admits({ host: key, later, webhookId }: Job, now: number): boolean {
    const share = later === true ? 0.75 : 1
    const line = this.lines.get(webhookId)!
    const { active, answers } = this.hosts.get(key) ?? { active: 0, answers: false }
    if (this.active >= this.limits.active * share || line.active >= line.window) return false
    if (line.rate !== null && line.starts.filter((at) => at + 1_000 > now).length >= line.rate) return false
    if (answers) return active < this.limits.perHost * share
    const silent = [...this.hosts.values()].reduce((sum, host) => host.answers ? sum : sum + host.active, 0)
    return active < this.limits.perSilentHost * share && silent < Math.floor(this.limits.active / 2) * share
  }

  /** Starts a waiting task; its account and webhook go to the end of their lines. */
  start(job: Job, now: number): void {
    const kind = job.later === true ? "later" : "first"
    const line = this.lines.get(job.webhookId)!
    const turn = this.turns[kind].get(job.accountId)!
    line.waiting[kind].shift()
    turn.delete(line)
    if (line.waiting[kind].length > 0) turn.add(line)
    this.turns[kind].delete(job.accountId)
    if (turn.size > 0) this.turns[kind].set(job.accountId, turn)
    const host = this.hosts.get(job.host) ?? { active: 0, answers: false }
    this.hosts.set(job.host, host)
    host.active++
    line.active++
    line.starts.push(now)
    this.active++
  }

  done(job: Job, answered: boolean | null): void {
    const [host, line] = [this.hosts.get(job.host)!, this.lines.get(job.webhookId)!]
    host.active--
    line.active--
    this.active--
    if (answered !== null) {
      host.answers = answered
      line.window = answered ? Math.min(128, line.window + 1) : Math.max(1, line.window >> 1)
    }
    if (host.active === 0 && !host.answers) this.hosts.delete(job.host)
  }

  private pick(kind: Kind, now: number): Job | undefined {
    for (const turn of this.turns[kind].values()) {
      for (const line of turn) {
        const job = line.waiting[kind][0]!
        if (!this.admits(job, now)) continue
        this.start(job, now)
        return job
      }
    }
    return undefined
  }
}
