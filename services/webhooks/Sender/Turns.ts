import type { AccountId } from "../../../schemas/BrandedIds.ts"

/**
 * A fair queue: accounts take turns, and the items of an account take turns within it. Adding, deleting and taking have
 * a constant cost.
 */
export class Turns<Item> {
  private readonly lines = new Map<AccountId, Set<Item>>()

  /** Accounts that have an item. */
  get accounts(): number {
    return this.lines.size
  }

  /** Adds an item after the others of its account; a new account is added after the other accounts. */
  add(accountId: AccountId, item: Item): void {
    const line = this.lines.get(accountId)
    if (line === undefined) this.lines.set(accountId, new Set([item]))
    else line.add(item)
  }

  delete(accountId: AccountId, item: Item): void {
    const line = this.lines.get(accountId)
    if (line?.delete(item) === true && line.size === 0) this.lines.delete(accountId)
  }

  /**
   * Removes items in their order up to the first that `wants` accepts, and returns that one; its account goes to the
   * end.
   */
  take(wants: (item: Item) => boolean): Item | undefined {
    for (const [accountId, line] of this.lines) {
      for (const item of line) {
        line.delete(item)
        if (!wants(item)) continue
        this.lines.delete(accountId)
        if (line.size > 0) this.lines.set(accountId, line)
        return item
      }
      this.lines.delete(accountId)
    }
    return undefined
  }

  clear(): void {
    this.lines.clear()
  }
}
