/**
 * The fields of the seven mail kinds of the directory (DECISIONS-mail, Accounts and the directory). "Or null" there
 * means that a field may be null or absent. Text is bounded and without control characters, since it ends in subjects,
 * headers and terminals; times lie between 2000 and 2199.
 */
import { Schema } from "effect"
import { AccountStatus, Plan, WorkspaceRole } from "./Account.ts"

// A day that its month does not have would be taken as one of the next month.
const isRealDay = Schema.makeFilter((text: string) => {
  const [year, month, day] = text.slice(0, 10).split("-").map(Number)
  return new Date(Date.UTC(year!, month! - 1, day)).getUTCDate() === day
})

/** RFC 3339 with any offset. */
export const FeedTime = Schema.String.check(
  Schema.isPattern(
    /^2[01]\d{2}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/,
  ),
  isRealDay,
)

/** One line of text of 1 to `max` code points. */
const text = (max: number) =>
  Schema.String.check(
    Schema.isPattern(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u),
    Schema.isMaxCodePoints(max),
  )

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** An id of a mail kind: a UUID of any version, as the platform that made it saw fit. */
export const FeedId = Schema.String.check(Schema.isGUID())
const address = Schema.String.check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/u),
  Schema.isPattern(/^[^\p{Cc}\p{Cs}]*$/u),
  Schema.isMaxCodePoints(320),
)
const hostname = Schema.String.check(Schema.isPattern(/^[^\s@/\p{Cc}\p{Cs}]{1,253}$/u))

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
