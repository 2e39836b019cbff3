/**
 * A map of at most `most` entries, for state that can be read or made again: a full map drops the entry that was set
 * longest ago. A look-up costs as much as in a Map and does not count as use; `set` makes an entry the newest.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly most: number

  constructor(most: number) {
    super()
    this.most = most
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.most) {
      for (const oldest of this.keys()) {
        this.delete(oldest)
        break
      }
    }
    return this
  }
}
