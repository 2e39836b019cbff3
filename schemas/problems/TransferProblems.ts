/** Failures of domain transfers (docs/api/mail.md). */
import { Schema } from "effect"
import { Blocker } from "../mail/Transfer.ts"
import { Problem } from "./Problem.ts"

/** A domain or transfer that does not exist or that the caller may not see; a token that is unknown or used. */
export class TransferNotFound extends Problem<TransferNotFound>()("TransferNotFound", "not_found", 404, "Not found") {}

export class DomainNotVerified
  extends Problem<DomainNotVerified>()("DomainNotVerified", "domain_not_verified", 409, "The domain is not verified") {}

export class TargetNotFound
  extends Problem<TargetNotFound>()("TargetNotFound", "target_not_found", 404, "No account uses the address") {}

export class SelfTransfer
  extends Problem<SelfTransfer>()("SelfTransfer", "self_transfer", 409, "The domain is the recipient's already") {}

export class TransferActive extends Problem<TransferActive>()(
  "TransferActive",
  "transfer_active",
  409,
  "The domain has a transfer that is pending or accepted",
) {}

const blockers = { blockers: Schema.Array(Blocker) }

export class BroadcastsInFlight extends Problem<BroadcastsInFlight>()(
  "BroadcastsInFlight",
  "broadcasts_in_flight",
  409,
  "Broadcasts of the domain are scheduled or being sent",
  blockers,
) {}

export class ScheduledEmails extends Problem<ScheduledEmails>()(
  "ScheduledEmails",
  "scheduled_emails",
  409,
  "The domain has scheduled emails",
  blockers,
) {}

export class WrongRecipient
  extends Problem<WrongRecipient>()("WrongRecipient", "wrong_recipient", 403, "Sent to a different account") {}

export class TransferExpired
  extends Problem<TransferExpired>()("TransferExpired", "expired", 410, "The time to accept is over") {}

export class NotPending
  extends Problem<NotPending>()("NotPending", "not_pending", 409, "The transfer is not pending") {}

export class OrgAccessLost extends Problem<OrgAccessLost>()(
  "OrgAccessLost",
  "org_access_lost",
  403,
  "The recipient does not belong to the workspace",
) {}

export class DomainLimit
  extends Problem<DomainLimit>()("DomainLimit", "domain_limit", 403, "The plan's number of domains is reached") {}

export class NotStoppable
  extends Problem<NotStoppable>()("NotStoppable", "not_stoppable", 409, "The safety window is over") {}
