/**
 * The evidence of a review: one entry for each decision, with the digest of what was decided and of the entry before.
 * The whole chain is verified whenever the next decision builds on it.
 */
import { Clock, Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import type { AccessId, AccessReviewId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantReceipt } from "../../../schemas/identity/AccessReview.ts"
import { digestOf, genesis } from "../../platform/security/CanonicalJson.ts"
import { insertion, write } from "../../platform/database/UnitOfWork.ts"
import { Ids } from "../../platform/Ids.ts"
import { type Evidence, identityOf, type LoadedRow, type ReviewRow } from "./Rows.ts"

export interface EvidenceRow extends Evidence {
  readonly nth: number
  readonly reason: string
  readonly prev_digest: string
}

/** The digest of the Sponsor's decision. */
export const decisionDigest = (row: {
  readonly id: AccessReviewId
  readonly decision_id: string
  readonly access_id: AccessId
  readonly access_version: number
  readonly access_digest: string
  readonly grant_event_id: string
  readonly grant_event_digest: string
  readonly proposed_by: PersonId
  readonly proposed_at: Date
  readonly sponsor_reason: string
}): string =>
  digestOf({
    review_id: row.id,
    decision_id: row.decision_id,
    access: { access_id: row.access_id, version: row.access_version, digest: row.access_digest },
    grant_event: { event_id: row.grant_event_id, digest: row.grant_event_digest },
    person_id: row.proposed_by,
    decided_at: row.proposed_at.toISOString(),
    reason: row.sponsor_reason,
  })

const entryDigest = (row: ReviewRow, entry: Omit<EvidenceRow, "digest">): string =>
  digestOf({
    review_id: row.id,
    nth: entry.nth,
    receipt_id: entry.receipt_id,
    action: entry.action,
    person_id: entry.person_id,
    at: entry.at.toISOString(),
    reason: entry.reason,
    access: identityOf(row).access,
    sponsor_decision: row.decision_digest,
    grant_event: identityOf(row).grant_event,
    prev_digest: entry.prev_digest,
  })

/** Whether the entries are an unbroken chain that ends with the review's `evidence_digest`. */
export const isWhole = (row: ReviewRow, entries: ReadonlyArray<EvidenceRow>): boolean =>
  row.decision_digest === decisionDigest(row) && entries.length === row.evidence_count &&
  entries.at(-1)?.digest === row.evidence_digest &&
  entries.every((entry, i) =>
    entry.nth === i + 1 && entry.prev_digest === (entries[i - 1]?.digest ?? genesis) &&
    entry.digest === entryDigest(row, entry)
  )

/** SQL of a review's evidence as JSON, oldest first; `reviewId` is SQL of the review's id. */
export const entriesOf = (sql: PgClient.PgClient, reviewId: Statement.Fragment): Statement.Fragment =>
  sql`(select coalesce(json_agg(e order by e.nth), '[]')::text from (
    select nth, receipt_id, action, person_id, at, reason, digest, prev_digest
    from access_review_evidence where review_id = ${reviewId}) e)`

type Stored = Omit<EvidenceRow, "at"> & { readonly at: string }

/** The entries that `entriesOf` read. */
export const entriesIn = (json: string): ReadonlyArray<EvidenceRow> =>
  (JSON.parse(json) as ReadonlyArray<Stored>).map((entry) => ({ ...entry, at: new Date(entry.at) }))

/** The evidence of a loaded review. A broken chain is a defect: no decision may build on it. */
export const wholeChain = (row: LoadedRow): Effect.Effect<ReadonlyArray<EvidenceRow>> => {
  const entries = entriesIn(row.entries)
  return isWhole(row, entries)
    ? Effect.succeed(entries)
    : Effect.die(new Error(`The evidence of review ${row.id} does not hold`))
}

/** Adds entries to the chain of a review. The caller fences the review's row by the digest of its last entry. */
export const evidence = (sql: PgClient.PgClient) => {
  /** Makes the next entry, without writing it. */
  const next = Effect.fnUntraced(function* (
    row: ReviewRow,
    entries: ReadonlyArray<EvidenceRow>,
    { action, personId, reason }: {
      readonly action: GrantReceipt["action"]
      readonly personId: PersonId
      readonly reason: string
    },
  ) {
    const open = {
      nth: entries.length + 1,
      receipt_id: yield* (yield* Ids).next,
      action,
      person_id: personId,
      at: new Date(yield* Clock.currentTimeMillis),
      reason,
      prev_digest: entries.at(-1)?.digest ?? genesis,
    }
    return { ...open, digest: entryDigest(row, open) }
  })

  const rows = insertion(sql, "access_review_evidence", {
    review_id: "uuid",
    nth: "integer",
    receipt_id: "uuid",
    action: "text",
    person_id: "text",
    at: "timestamptz",
    reason: "text",
    digest: "text",
    prev_digest: "text",
  })

  /** Adds an entry in the current transaction (UnitOfWork.ts). */
  const add = (entry: EvidenceRow, reviewId: AccessReviewId) =>
    write(sql, rows, [{ ...entry, at: entry.at.toISOString(), review_id: reviewId }])

  return { next, add }
}
