/**
 * A simple model of transfers in memory, written from the specification and its decisions, with which histories of the
 * real service are compared. It shares no code with the service.
 */
import { TransferId } from "../../../schemas/BrandedIds.ts"
import { day } from "../../support/Fixtures.ts"

export type Status = "pending" | "accepted" | "completed" | "declined" | "cancelled" | "reversed" | "expired"
export type Role = "owner" | "admin" | "member"

export interface Transfer {
  id: TransferId
  readonly domain: number
  readonly source: number
  readonly sourceOrg: number
  readonly initiator: number
  readonly target: number
  readonly expires: number
  readonly forced: boolean
  status: Status
  org: number | null
  cooloff: number
  acceptUsed: boolean
  stopUsed: boolean
  /** Number of transitions. */
  changes: number
}

export type Plan = "free" | "starter" | "pro" | "business"

/** Domains that a plan allows; below zero: any number. */
const planLimits: Readonly<Record<Plan, number>> = { free: 1, starter: 5, pro: 25, business: -1 }

interface Person {
  active: boolean
  plan: Plan
  /** Replaces the plan's limit. */
  limit: number | null
  /** Roles by workspace; a smaller n means an older workspace. */
  readonly seats: Map<number, Role>
}

interface Domain {
  owner: number
  org: number
  verified: boolean
  held: boolean
}

export class Model {
  now: number
  readonly people: ReadonlyArray<Person>
  readonly domains: ReadonlyArray<Domain>
  readonly transfers: Array<Transfer> = []

  constructor(now: number, people: number, domains: number) {
    this.now = now
    this.people = Array.from({ length: people }, (_, n) => ({
      active: true,
      plan: "free" as const,
      limit: 2,
      seats: new Map([[n, "owner"]]),
    }))
    this.domains = Array.from({ length: domains }, () => ({ owner: 0, org: 0, verified: true, held: false }))
  }

  live(domain: number): Transfer | undefined {
    return this.transfers.find((t) => t.domain === domain && (t.status === "pending" || t.status === "accepted"))
  }

  become(t: Transfer, status: Status): void {
    t.status = status
    t.changes++
  }

  private oldest(person: number): number | undefined {
    return [...this.people[person]!.seats.keys()].sort((a, b) => a - b)[0]
  }

  private isUnchanged(t: Transfer): boolean {
    const domain = this.domains[t.domain]!
    return domain.verified && domain.owner === t.source && domain.org === t.sourceOrg
  }

  private move(t: Transfer, org: number): void {
    t.org = org
    Object.assign(this.domains[t.domain]!, { owner: t.target, org, held: true })
  }

  /** The due transition. */
  settle(t: Transfer | undefined): void {
    if (t?.status === "pending" && this.now >= t.expires) return this.become(t, "expired")
    if (t?.status !== "accepted" || this.now < t.cooloff) return
    const { active, seats } = this.people[t.target]!
    const org = seats.has(t.org!) ? t.org! : this.oldest(t.target)
    if (!this.isUnchanged(t) || !active || org === undefined) return this.become(t, "reversed")
    this.become(t, "completed")
    this.move(t, org)
  }

  private start(domain: number, initiator: number, target: number, forced: boolean): Transfer {
    const { org: sourceOrg, owner: source } = this.domains[domain]!
    const made: Transfer = {
      id: TransferId.make(""),
      domain,
      source,
      sourceOrg,
      initiator,
      target,
      forced,
      expires: this.now + 7 * day,
      cooloff: 0,
      org: null,
      acceptUsed: false,
      stopUsed: false,
      status: "pending" as const,
      changes: 1,
    }
    this.transfers.push(made)
    return made
  }

  initiate(who: number, d: number, to: number): string {
    this.settle(this.live(d))
    if (!this.people[who]!.active) return "invalid_credentials"
    const domain = this.domains[d]!
    const role = this.people[who]!.seats.get(domain.org)
    if (domain.owner !== who && role !== "owner" && role !== "admin") return role ? "forbidden" : "not_found"
    if (!domain.verified) return "domain_not_verified"
    if (!this.people[to]!.active) return "target_not_found"
    if (to === who || to === domain.owner) return "self_transfer"
    if (this.live(d)) return "transfer_active"
    this.start(d, who, to, false)
    return "done"
  }

  accept(who: number, t: Transfer, byToken: boolean, chosen: number | null): string {
    this.settle(t)
    const { active, limit: own, plan, seats } = this.people[who]!
    const limit = own ?? planLimits[plan]
    if (!active) return "invalid_credentials"
    if (byToken && t.acceptUsed) return "not_found"
    if (who !== t.target) return "wrong_recipient"
    if (t.status === "expired") return "expired"
    if (t.status !== "pending") return "not_pending"
    if (!this.isUnchanged(t)) {
      this.become(t, "cancelled")
      return "not_pending"
    }
    const org = chosen ?? this.oldest(who)
    if (org === undefined || !seats.has(org)) return "org_access_lost"
    const owned = this.domains.filter(({ owner }) => owner === who).length
    const coming = this.transfers.filter(({ status, target }) => status === "accepted" && target === who).length
    if (limit >= 0 && owned + coming >= limit) return "domain_limit"
    Object.assign(t, { org, cooloff: this.now + day, acceptUsed: byToken })
    this.become(t, "accepted")
    return "done"
  }

  private sides(who: number, t: Transfer) {
    const role = this.people[who]!.seats.get(t.sourceOrg)
    return {
      recipient: who === t.target,
      source: who === t.source || role === "owner" || role === "admin",
      looks: who === t.initiator || role !== undefined,
    }
  }

  decline(who: number, t: Transfer): string {
    this.settle(t)
    if (!this.people[who]!.active) return "invalid_credentials"
    const { looks, recipient, source } = this.sides(who, t)
    if (!recipient) return source || looks ? "wrong_recipient" : "not_found"
    if (t.status !== "pending") return "not_pending"
    this.become(t, "declined")
    return "done"
  }

  cancel(who: number, t: Transfer): string {
    this.settle(t)
    if (!this.people[who]!.active) return "invalid_credentials"
    const { looks, recipient, source } = this.sides(who, t)
    if (!source) return recipient || looks ? "forbidden" : "not_found"
    if (t.status !== "pending") return "not_pending"
    this.become(t, "cancelled")
    return "done"
  }

  stop(t: Transfer): string {
    this.settle(t)
    if (t.stopUsed) return "not_found"
    if (t.status !== "accepted") return "not_stoppable"
    t.stopUsed = true
    this.become(t, "reversed")
    return "done"
  }

  /** The domain was forced or changed by the directory. */
  private end(t: Transfer): void {
    this.become(t, t.status === "accepted" ? "reversed" : this.now >= t.expires ? "expired" : "cancelled")
  }

  force(d: number, admin: number, to: number): string {
    const live = this.live(d)
    this.settle(live)
    if (!this.people[to]!.active) return "target_not_found"
    if (this.domains[d]!.owner === to) return "self_transfer"
    const org = this.oldest(to)
    if (org === undefined) return "org_access_lost"
    const still = this.live(d)
    if (still) this.end(still)
    const made = this.start(d, admin, to, true)
    made.status = "completed"
    this.move(made, org)
    return "done"
  }

  /** A line of the directory: a completed transfer's owner stays until the directory confirms it. */
  feed(d: number, owner: number, verified: boolean): void {
    const domain = this.domains[d]!
    domain.verified = verified
    if (!domain.held || domain.owner === owner) Object.assign(domain, { owner, org: owner, held: false })
    const live = this.live(d)
    if (live && (live.source !== domain.owner || live.sourceOrg !== domain.org)) this.end(live)
  }
}
