/**
 * A map of at most `most` entries, for state that can be read or made again: a full map drops the entry that was set
 * longest ago. A look-up costs as much as in a Map and does not count as use; `set` makes an entry the newest.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly most: number
  readonly #dropped: ((value: V) => void) | undefined

  /** `dropped` is called with each value that a full map drops. */
  constructor(most: number, dropped?: (value: V) => void) {
    super()
    this.most = most
    this.#dropped = dropped
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.most) {
      for (const [oldest, dropped] of this) {
        this.delete(oldest)
        this.#dropped?.(dropped)
        break
      }
    }
    return this
  }
}
