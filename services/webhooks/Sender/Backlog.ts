/**
 * Webhooks with more due than they could claim. Those that may have room take turns, account by account; one that was
 * found without room is left out until its state changes (`woken`), so a look costs what it claims, not what waits.
 */
import { Turns } from "./Turns.ts"

/** Claims that were reserved for a webhook that has more due than it could claim. */
export interface Fed {
  readonly webhookId: string
  readonly accountId: string
  readonly count: number
}

/** How much a webhook would take: `now`, and whether it can be more before its own state changes. */
export interface Appetite {
  readonly now: number
  readonly sated: boolean
}

export class Backlog {
  /** By webhook its account. */
  private readonly all = new Map<string, string>()
  private readonly turns = new Turns<string>()
  private readonly sated = new Set<string>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  get size(): number {
    return this.all.size
  }

  /** Whether a look may find a webhook with room. */
  get mayFind(): boolean {
    return this.turns.accounts > 0
  }

  /** Adds a webhook, unless there are too many. */
  add(webhookId: string, accountId: string): void {
    if (this.all.size >= this.most || this.all.has(webhookId)) return
    this.all.set(webhookId, accountId)
    this.turns.add(accountId, webhookId)
  }

  /** Whether this webhook waits for its state to change. */
  isSated(webhookId: string): boolean {
    return this.sated.has(webhookId)
  }

  /** Lets a sated webhook take turns again. */
  woken(webhookId: string): void {
    const accountId = this.all.get(webhookId)
    if (this.sated.delete(webhookId) && accountId !== undefined) this.turns.add(accountId, webhookId)
  }

  /** Takes webhooks out, each with its share of `most`, no webhook twice. */
  feed(most: number, appetite: (webhookId: string) => Appetite): ReadonlyArray<Fed> {
    const fed: Array<Fed> = []
    const later: Array<string> = []
    let left = most
    while (left > 0 && this.turns.accounts > 0) {
      const { accounts } = this.turns
      const share = Math.max(1, Math.floor(left / accounts))
      for (let turn = 0; turn < accounts && left > 0; turn++) {
        let room = 0
        const webhookId = this.turns.take((id) => {
          const { now, sated } = appetite(id)
          if (sated) this.sated.add(id)
          else if (now === 0) later.push(id)
          room = now
          return now > 0
        })
        if (webhookId === undefined) break
        const count = Math.min(share, left, room)
        const accountId = this.all.get(webhookId)!
        this.all.delete(webhookId)
        left -= count
        fed.push({ webhookId, accountId, count })
      }
    }
    for (const webhookId of later) this.turns.add(this.all.get(webhookId)!, webhookId)
    return fed
  }
}
