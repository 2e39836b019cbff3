/**
 * The backlogged webhooks: those with more due deliveries than they could claim. Webhooks that may have free slots take
 * turns, account by account. One without free slots is skipped until its state changes (`woken`), so the cost depends
 * on the number of claims, not on the size of the backlog.
 */
import type { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { Turns } from "./Turns.ts"

/** Slots that were reserved for a backlogged webhook. */
export interface Reservation {
  readonly webhookId: WebhookId
  readonly accountId: AccountId
  readonly count: number
}

/** How many deliveries a webhook may claim now; `skip`: none before its own state changes. */
export interface Claimable {
  readonly now: number
  readonly skip: boolean
}

export class Backlog {
  /** The accounts of all backlogged webhooks, by webhook. */
  private readonly all = new Map<WebhookId, AccountId>()
  private readonly turns = new Turns<WebhookId>()
  private readonly skipped = new Set<WebhookId>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  get size(): number {
    return this.all.size
  }

  /** Whether a webhook may have free slots. */
  get mayFind(): boolean {
    return this.turns.accounts > 0
  }

  /** Adds a webhook, unless the maximum is reached. */
  add(webhookId: WebhookId, accountId: AccountId): void {
    if (this.all.size >= this.most || this.all.has(webhookId)) return
    this.all.set(webhookId, accountId)
    this.turns.add(accountId, webhookId)
  }

  has(webhookId: WebhookId): boolean {
    return this.all.has(webhookId)
  }

  /** Whether this webhook is skipped until its state changes. */
  isSkipped(webhookId: WebhookId): boolean {
    return this.skipped.has(webhookId)
  }

  /** Lets a skipped webhook take turns again. */
  woken(webhookId: WebhookId): void {
    const accountId = this.all.get(webhookId)
    if (this.skipped.delete(webhookId) && accountId !== undefined) this.turns.add(accountId, webhookId)
  }

  /** Removes webhooks with free slots, each with its share of `most`; no webhook twice. */
  take(most: number, claimable: (webhookId: WebhookId) => Claimable): ReadonlyArray<Reservation> {
    const reserved: Array<Reservation> = []
    const later: Array<WebhookId> = []
    let left = most
    while (left > 0 && this.turns.accounts > 0) {
      const { accounts } = this.turns
      const share = Math.max(1, Math.floor(left / accounts))
      for (let turn = 0; turn < accounts && left > 0; turn++) {
        let room = 0
        const webhookId = this.turns.take((id) => {
          const { now, skip } = claimable(id)
          if (skip) this.skipped.add(id)
          else if (now === 0) later.push(id)
          room = now
          return now > 0
        })
        if (webhookId === undefined) break
        const count = Math.min(share, left, room)
        const accountId = this.all.get(webhookId)!
        this.all.delete(webhookId)
        left -= count
        reserved.push({ webhookId, accountId, count })
      }
    }
    for (const webhookId of later) this.turns.add(this.all.get(webhookId)!, webhookId)
    return reserved
  }
}
