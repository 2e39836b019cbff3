/** Records of the audit, as operators and as their own actors see them (docs/api/identity.md). */
import { Schema } from "effect"
import { QueryUuid, Text } from "../Validation/Scalars.ts"
import { AskedTime, Id, Timestamp } from "../Wire.ts"
import { limitOr } from "./ListPage.ts"

const orNull = Schema.NullOr

const Outcome = Schema.Literals(["done", "refused", "failed"])

/** The `after_id` of the next page; null on the last page. */
export const nextAfterId = orNull(Id).annotate({
  identifier: "NextAfterId",
  description: "The `after_id` of the next page; null on the last page. A page may be short before the last",
})

const own = {
  id: Id,
  at: Timestamp,
  /** The `X-Request-ID` of the request, `client:` before it where the client chose it. */
  request_id: orNull(Schema.String),
  route: orNull(Schema.String),
  action: Schema.String,
  /** The object of the action: `webhook:<id>`. */
  subject: orNull(Schema.String),
  outcome: Outcome,
  status: orNull(Schema.Int),
  /** The code of the problem that a refused or failed request was answered with. */
  code: orNull(Schema.String),
}

export const OwnAuditRecord = Schema.Struct(own).annotate({ identifier: "OwnAuditRecord" })

export const AuditRecordView = Schema.Struct({
  ...own,
  /** `account:<id>`, `person:<id>`, `service:<issuer> <client_id>`, `system`; null where no caller was recognised. */
  actor: orNull(Schema.String),
  details: Schema.Record(Schema.String, Schema.Unknown),
}).annotate({ identifier: "AuditRecord" })

/** The proof that a decision is in the transparency log (docs/transparency.md). */
export const DecisionProofView = Schema.Struct({
  /** The record that the entry commits to; null where the audit keeps it no more. */
  record: orNull(AuditRecordView),
  /** The 16 bytes that the entry was made with, in base64. */
  salt: Schema.String,
  /** The entry: the SHA-256 of the canonical JSON of `record` and `salt`, in base64. */
  entry: Schema.String,
  /** The entry's place in the log; null until a checkpoint has it, within a second. */
  index: orNull(Schema.Int),
  /** The proof by C2SP tlog-proof, with the checkpoint; null until then. */
  proof: orNull(Schema.String),
}).annotate({ identifier: "DecisionProof" })
export type DecisionProofView = typeof DecisionProofView.Type

/** A decision about the person who asks, with no word of who made it, nor what would let one guess it: no salt. */
export const DecisionAboutPerson = Schema.Struct({
  /** The audit's record of it, which those who decided may name. */
  record_id: Id,
  at: Timestamp,
  action: Schema.String,
  /** The object that was decided on: `access-review:<id>`. */
  subject: Schema.String,
  /** The entry of the log, in base64: the digest of the record and its salt, which those who decided have. */
  entry: Schema.String,
  /** The entry's place in the log; null until a checkpoint has it, within a second. */
  index: orNull(Schema.Int),
  /** The proof by C2SP tlog-proof, with the checkpoint; null until then. */
  proof: orNull(Schema.String),
}).annotate({ identifier: "DecisionAboutPerson" })

export const DecisionsAboutPerson = Schema.Struct({
  items: Schema.Array(DecisionAboutPerson),
  next_after_id: nextAfterId,
}).annotate({ identifier: "DecisionsAboutPerson" })
export type DecisionsAboutPerson = typeof DecisionsAboutPerson.Type

export const aboutPersonQuery = { limit: limitOr(20), after_id: Schema.optionalKey(QueryUuid) }

export const AuditPage = Schema.Struct({ items: Schema.Array(AuditRecordView), next_after_id: nextAfterId })
  .annotate({ identifier: "AuditPage" })
export type AuditPage = typeof AuditPage.Type

export const OwnAuditPage = Schema.Struct({ items: Schema.Array(OwnAuditRecord), next_after_id: nextAfterId })
  .annotate({ identifier: "OwnAuditPage" })
export type OwnAuditPage = typeof OwnAuditPage.Type

const text = Schema.optionalKey(Text(1, 512))

export const ownAuditQuery = {
  action: text,
  outcome: Schema.optionalKey(Outcome),
  code: text,
  /** The id as an answer shows it. */
  request_id: text,
  /** Records of this time or later. */
  since: Schema.optionalKey(AskedTime),
  /** Records before this time. */
  until: Schema.optionalKey(AskedTime),
  limit: limitOr(50),
  after_id: Schema.optionalKey(QueryUuid),
}

export const auditQuery = {
  ...ownAuditQuery,
  actor: text,
  /** An object, with its kind or without: `webhook:<id>`, `domain:<name>`; also where only details name it. */
  subject: text,
}
