/** Domain transfers as the API shows them (docs/transfers.md). */
import { Schema } from "effect"
import { AccountId, DomainId, TransferId, WorkspaceId } from "../BrandedIds.ts"
import { Id, Timestamp } from "../Wire.ts"

export const TransferStatus = Schema.Literals([
  "pending",
  "accepted",
  "completed",
  "declined",
  "cancelled",
  "reversed",
  "expired",
]).annotate({ identifier: "DomainTransferStatus" })
export type TransferStatus = typeof TransferStatus.Type

/** Whether the transfer can still change; a domain has at most one such transfer. */
export const isLive = (status: TransferStatus): boolean => status === "pending" || status === "accepted"

export const DomainTransfer = Schema.Struct({
  id: TransferId,
  domain_id: DomainId,
  domain_name: Schema.String,
  /** The account that owned the domain, even where an administrator of its workspace initiated. */
  source_user_id: AccountId,
  source_org_id: WorkspaceId,
  source_label: Schema.String,
  target_email: Schema.String,
  target_user_id: Schema.NullOr(AccountId),
  target_org_id: Schema.NullOr(WorkspaceId),
  status: TransferStatus,
  note: Schema.NullOr(Schema.String),
  cooloff_until: Schema.NullOr(Timestamp),
  initiated_at: Timestamp,
  accepted_at: Schema.NullOr(Timestamp),
  completed_at: Schema.NullOr(Timestamp),
  expires_at: Timestamp,
}).annotate({ identifier: "DomainTransfer" })
export type DomainTransfer = typeof DomainTransfer.Type

const nextAfterId = Schema.NullOr(TransferId).annotate({
  description: "The `after_id` of the next page; null where this page is the last",
})

export const DomainTransferPage = Schema.Struct({ items: Schema.Array(DomainTransfer), next_after_id: nextAfterId })
  .annotate({ identifier: "DomainTransferPage" })
export type DomainTransferPage = typeof DomainTransferPage.Type

/** A transfer of any account, for platform administrators. */
export const PlatformTransfer = Schema.Struct({
  ...DomainTransfer.fields,
  source_email: Schema.NullOr(Schema.String).annotate({
    description: "The address of the account that owned the domain; null where the account is gone",
  }),
  forced: Schema.Boolean.annotate({ description: "Whether an administrator moved the domain at once" }),
}).annotate({ identifier: "PlatformTransfer" })
export type PlatformTransfer = typeof PlatformTransfer.Type

export const PlatformTransferPage = Schema.Struct({
  items: Schema.Array(PlatformTransfer),
  next_after_id: nextAfterId,
}).annotate({ identifier: "PlatformTransferPage" })
export type PlatformTransferPage = typeof PlatformTransferPage.Type

export const AcceptEligibility = Schema.Struct({
  can_accept: Schema.Boolean,
  code: Schema.NullOr(Schema.Literal("domain_limit")),
  message: Schema.NullOr(Schema.String),
  current_domains: Schema.Int,
  /** -1: unlimited. */
  domain_limit: Schema.Int,
}).annotate({ identifier: "AcceptEligibility" })
export type AcceptEligibility = typeof AcceptEligibility.Type

/** An object that blocks the transfer of its domain. */
export const Blocker = Schema.Struct({
  kind: Schema.Literals(["broadcast", "scheduled_email"]),
  id: Id,
  name: Schema.String,
  status: Schema.Literals(["scheduled", "sending"]),
  scheduled_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "TransferBlocker" })
export type Blocker = typeof Blocker.Type

/** `active`: the key signs the domain's mail; `prepared`: it will, once its transfer takes effect. */
export const DkimKeyView = Schema.Struct({
  selector: Schema.String,
  status: Schema.Literals(["active", "prepared"]),
  algorithm: Schema.NullOr(Schema.Literals(["rsa", "ed25519"])).annotate({
    description: "Null, as are the public key and the record's value, where the platform made the key",
  }),
  public_key: Schema.NullOr(Schema.String),
  record_name: Schema.String.annotate({ description: "Of the TXT record that publishes the key" }),
  record_value: Schema.NullOr(Schema.String),
  transfer_id: Schema.NullOr(TransferId),
  effective_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "DkimKey" })
export type DkimKeyView = typeof DkimKeyView.Type

export const DomainDkim = Schema.Struct({
  domain_id: DomainId,
  domain_name: Schema.String,
  keys: Schema.Array(DkimKeyView),
}).annotate({ identifier: "DomainDkim" })
export type DomainDkim = typeof DomainDkim.Type
