/** The evidence of a review, recomputed from its rows by RFC 8785 and SHA-256 alone. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { AccessReviewId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"

type Row = Record<string, unknown> & { readonly [at: string]: unknown }

// The rows hold no numbers but small integers, whose canonical form is the usual one.
const canonical = (value: unknown): string => {
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical)}]`
  const members = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)}}`
}
const hash = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`
const stamp = (at: unknown) => (at as Date).toISOString()

/** Fails where a digest of a review's evidence is wrong; returns the digests of its entries. */
export const verified = Effect.fnUntraced(function* (reviewId: AccessReviewId) {
  const { sql } = yield* Database
  const [review] = yield* sql<Row>`
    select *, id::text as id, decision_id::text as decision_id, grant_event_id::text as grant_event_id
    from access_reviews where id = ${reviewId}::uuid`
  const r = review!
  const [version] = yield* sql<Row>`
    select *, event_id::text as event_id from access_versions
    where access_id = ${String(r["access_id"])} and access_version = ${Number(r["access_version"])}`
  const { digest, ...facts } = version!
  assert.strictEqual(digest, hash(canonical({ ...facts, created_at: stamp(facts["created_at"]) })))
  assert.strictEqual(digest, r["access_digest"])

  const [event] = yield* sql<Row>`select * from lifecycle_events where id = ${String(facts["event_id"])}::uuid`
  const { body_digest, epoch, position, prev_digest } = event!
  assert.strictEqual(event!["digest"], hash([prev_digest, epoch, position, body_digest].join("\n")))
  assert.deepStrictEqual(
    [facts["event_id"], event!["digest"], position],
    [r["grant_event_id"], r["grant_event_digest"], r["grant_event_position"]],
  )

  const access = { access_id: r["access_id"], version: r["access_version"], digest }
  const granted = { event_id: r["grant_event_id"], digest: r["grant_event_digest"] }
  const decided = {
    review_id: reviewId,
    decision_id: r["decision_id"],
    access,
    grant_event: granted,
    person_id: r["proposed_by"],
    decided_at: stamp(r["proposed_at"]),
    reason: r["sponsor_reason"],
  }
  assert.strictEqual(r["decision_digest"], hash(canonical(decided)))

  const entries = yield* sql<Row>`
    select nth, receipt_id::text as receipt_id, action, person_id, at, reason, digest, prev_digest
    from access_review_evidence where review_id = ${reviewId}::uuid order by nth`
  let prev = `sha256:${"0".repeat(64)}`
  for (const [i, { digest, ...entry }] of entries.entries()) {
    assert.deepStrictEqual([entry["nth"], entry["prev_digest"]], [i + 1, prev])
    const told = { ...entry, at: stamp(entry["at"]), review_id: reviewId, sponsor_decision: r["decision_digest"] }
    prev = hash(canonical({ ...told, access, grant_event: { ...granted, position: Number(position) } }))
    assert.strictEqual(digest, prev)
  }
  assert.deepStrictEqual([r["evidence_digest"], r["evidence_count"]], [prev, entries.length])
  return entries.map((entry) => String(entry["digest"]))
})
