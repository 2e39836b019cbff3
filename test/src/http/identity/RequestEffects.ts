/** Counts of how often an operation took effect, from the database. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../../../services/platform/database/Database.ts"
import type { Answer } from "./IdentityClient.ts"
import type { Asked } from "./Catalogue.ts"

/** The rows of each operation's effect. */
export const effects: Readonly<
  Record<string, (asked: Asked, answer: Answer) => Effect.Effect<number, SqlError.SqlError, Database>>
> = {
  "access-grant-reviews.proposeAccessGrantReview": (asked) =>
    counted("select from access_reviews where access_id = $1", asked.body!["access_id"]),
  "websites.registerWebsite": (asked) => counted("select from projects where website = $1", asked.body!["website"]),
  "enrollments.createEnrollment": (asked) =>
    counted("select from requests where fields ->> 'recipient' = $1", asked.body!["recipient"]),
  "requests.createPerson": (asked) => counted("select from people where subject = $1", asked.body!["subject"]),
  "access-grant-reviews.approveAccessGrantReview": (_asked, { body }) =>
    counted("select from access_review_evidence where action = 'approve' and review_id::text = $1", body.review_id),
  "lifecycle-service-grants.approveLifecycleServiceGrant": (_asked, { body }) => toldOfGrant("approved", body.id),
  "lifecycle-service-grants.revokeLifecycleServiceGrant": (_asked, { body }) =>
    counted(
      "select from audit_records where action = 'service-grant.revoke' and subject = 'service-grant:' || $1",
      body.id,
    ),
  "websites.withdrawWebsite": (_asked, { body }) =>
    counted("select from lifecycle_events where kind = 'project-withdrawn' and project_id = $1", body.project_id),
}

export const counted = (statement: string, value: unknown) =>
  Effect.flatMap(Database, ({ sql }) => Effect.map(sql.unsafe(statement, [value]), (rows) => rows.length))

export const toldOfGrant = (what: "approved" | "revoked", id: string) =>
  counted(
    `select from lifecycle_events where kind = 'service-grant-${what}' and payload->'grant'->>'grant_id' = $1`,
    id,
  )
