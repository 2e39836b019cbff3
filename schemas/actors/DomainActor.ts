/** The actor of one domain: runs the commands on its transfers, one at a time. Commands carry ids, never tokens. */
import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { DomainTransfer } from "../mail/Transfer.ts"
import { DependencyUnavailable, Forbidden, InvalidCredentials, RateLimited } from "../problems/HttpProblems.ts"
import { Held } from "../problems/IdentityProblems.ts"
import * as Problems from "../problems/TransferProblems.ts"
import { Origin } from "./WebhookActor.ts"

const command = { origin: Origin, commandId: Schema.String }
const byAccount = { ...command, accountId: Schema.String }
const onTransfer = { transferId: Schema.String }

export const DomainActor = Entity.make("Domain", [
  Rpc.make("Initiate", {
    payload: { ...byAccount, targetEmail: Schema.String, note: Schema.NullOr(Schema.String) },
    success: DomainTransfer,
    error: Schema.Union([
      Problems.TransferNotFound,
      Forbidden,
      RateLimited,
      InvalidCredentials,
      Problems.DomainNotVerified,
      Problems.TargetNotFound,
      Problems.SelfTransfer,
      Problems.TransferActive,
      Problems.BroadcastsInFlight,
      Problems.ScheduledEmails,
      Held,
      DependencyUnavailable,
    ]),
  }),
  Rpc.make("Accept", {
    payload: {
      ...byAccount,
      ...onTransfer,
      byToken: Schema.Boolean,
      orgId: Schema.NullOr(Schema.String),
      rotateDkim: Schema.Boolean,
    },
    success: DomainTransfer,
    error: Schema.Union([
      Problems.TransferNotFound,
      InvalidCredentials,
      Problems.WrongRecipient,
      Problems.TransferExpired,
      Problems.NotPending,
      Problems.OrgAccessLost,
      Problems.DomainLimit,
      Held,
      DependencyUnavailable,
    ]),
  }),
  Rpc.make("Decline", {
    payload: { ...byAccount, ...onTransfer },
    success: DomainTransfer,
    error: Schema.Union([
      Problems.TransferNotFound,
      InvalidCredentials,
      Problems.WrongRecipient,
      Problems.NotPending,
      DependencyUnavailable,
    ]),
  }),
  Rpc.make("Cancel", {
    payload: { ...byAccount, ...onTransfer },
    success: DomainTransfer,
    error: Schema.Union([
      Problems.TransferNotFound,
      InvalidCredentials,
      Forbidden,
      Problems.NotPending,
      DependencyUnavailable,
    ]),
  }),
  Rpc.make("Stop", {
    payload: { ...command, ...onTransfer },
    success: DomainTransfer,
    error: Schema.Union([Problems.TransferNotFound, Problems.NotStoppable, DependencyUnavailable]),
  }),
  Rpc.make("Force", {
    payload: { ...byAccount, targetEmail: Schema.String, rotateDkim: Schema.Boolean },
    success: DomainTransfer,
    error: Schema.Union([
      Problems.TransferNotFound,
      InvalidCredentials,
      Problems.TargetNotFound,
      Problems.SelfTransfer,
      Problems.OrgAccessLost,
      Held,
      DependencyUnavailable,
    ]),
  }),
])
