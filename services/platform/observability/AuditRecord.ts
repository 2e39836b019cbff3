/** A record of the audit, and what is asked of the records (AuditLog.ts). */

export interface AuditRecord {
  readonly id: string
  readonly at: Date
  readonly request_id: string | null
  readonly route: string | null
  readonly action: string
  readonly actor: string | null
  readonly subject: string | null
  readonly outcome: "done" | "refused" | "failed"
  readonly status: number | null
  readonly code: string | null
  readonly details: Readonly<Record<string, unknown>>
}

export interface AuditQuery {
  /** The id as an answer shows it, or `client:<id>`, which finds only records whose id the client chose. */
  readonly requestId?: string | undefined
  /** The object: `webhook:<id>`, `transfer:<id>`, or the id alone. */
  readonly subject?: string | undefined
  /** Milliseconds since 1970. */
  readonly since?: number | undefined
}

/** Conditions that all have to hold; one that is undefined holds. */
export interface AuditFilter extends AuditQuery {
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly outcome?: AuditRecord["outcome"] | undefined
  readonly code?: string | undefined
  /**
   * Leaves out what is no evidence of who may act: acts of mail accounts other than transfers, sign-ins, settings of a
   * person's own, and requests of nobody who was recognised.
   */
  readonly evidence?: boolean
  /** Milliseconds since 1970: records before this time. */
  readonly until?: number | undefined
}

export interface AuditPage {
  readonly records: ReadonlyArray<AuditRecord>
  /** Where the next page begins; null on the last page. It may lie behind the last record of this one. */
  readonly nextAfterId: string | null
}
