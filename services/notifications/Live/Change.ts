/** The changes of an inbox since a position. */
export interface Change {
  readonly epoch: string
  readonly version: number
  readonly total: number
  readonly unread: number
  readonly read_all_version: number
  readonly read_all_at: string | null
  /** The changed notifications in the order of versions, at most a page of them. */
  readonly rows: ReadonlyArray<{ readonly version: number; readonly body: string }>
}
