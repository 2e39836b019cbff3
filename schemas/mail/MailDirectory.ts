/**
 * The fields of the seven mail kinds of the directory (docs/api/mail.md). "Or null" there
 * means that a field may be null or absent.
 */
import { Schema } from "effect"
import { address, FeedTime, hostname, orNull, text } from "../bus/Fields.ts"
import { AccountStatus, Plan, WorkspaceRole } from "./MailAccount.ts"

/** An id of a mail kind: a UUID of any version, chosen by the mail platform. */
export const FeedId = Schema.String.check(Schema.isGUID())

export const AccountFields = Schema.Struct({
  email: address,
  name: text(500),
  plan: Plan,
  domain_limit: orNull(Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 1_000_000 }))),
  platform_admin: Schema.Boolean,
  status: AccountStatus,
  slack_webhook_url: orNull(text(2048)),
})

export const WorkspaceFields = Schema.Struct({ name: text(500), created_at: FeedTime })

export const WorkspaceMembershipFields = Schema.Struct({
  workspace_id: FeedId,
  account_id: FeedId,
  role: WorkspaceRole,
})

export const DomainFields = Schema.Struct({
  name: hostname,
  account_id: FeedId,
  workspace_id: FeedId,
  verified_at: orNull(FeedTime),
  dkim_selector: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{1,63}$/)),
})

export const BroadcastFields = Schema.Struct({
  domain_id: FeedId,
  name: text(500),
  status: Schema.Literals(["draft", "scheduled", "sending", "sent", "cancelled"]),
  scheduled_at: orNull(FeedTime),
})

export const ScheduledEmailFields = Schema.Struct({
  domain_id: FeedId,
  subject: text(998),
  scheduled_at: FeedTime,
  status: Schema.Literals(["scheduled", "sent", "cancelled"]),
})

export const SmtpCredentialFields = Schema.Struct({
  domain_id: FeedId,
  account_id: FeedId,
  username: text(320),
  revoked_at: orNull(FeedTime),
})
