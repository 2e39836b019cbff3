/**
 * The commands on the transfers of a domain (docs/transfers.md), each declared once: the fields that its client writes,
 * the fields that the program adds, and its failures. From here come the body and the errors of an endpoint
 * (schemas/api/TransfersApi.ts), the message to the actor (schemas/actors/DomainActor.ts), and the types of a method of
 * the service (services/transfers/Transfers.ts).
 *
 * During an upgrade, processes of two versions send each other these messages: a field keeps its name, and a new field
 * is optional.
 */
import { Schema } from "effect"
import { AccountId, CommandId, type DomainId, TransferId, WorkspaceId } from "../BrandedIds.ts"
import { PendingReceipt } from "../identity/PendingReceipt.ts"
import { DependencyUnavailable, Forbidden, InvalidCredentials, RateLimited } from "../problems/HttpProblems.ts"
import { Held } from "../problems/IdentityProblems.ts"
import * as Problems from "../problems/TransferProblems.ts"
import { BodyBoolean, Text } from "../Validation/Scalars.ts"

/** A field that the client writes. */
interface Field {
  /** Its name in the body; in the command it may have another. */
  readonly name: string
  readonly body: Schema.Top
  /** Its schema in the command. */
  readonly value: Schema.Top
  /** Its value in the command where the body has none. */
  readonly otherwise: unknown
}

type Fields = Readonly<Record<string, Field>>
type BodyFields<F extends Fields> = { readonly [K in keyof F as F[K]["name"]]: F[K]["body"] }
type CommandFields<F extends Fields> = { readonly [K in keyof F]: F[K]["value"] }

const required = <const Name extends string, S extends Schema.Top>(name: Name, schema: S) => ({
  name,
  body: schema,
  value: Schema.toType(schema),
  otherwise: undefined,
})

/** The body may leave the field out, or write null: the command has `otherwise` then. */
const optional = <const Name extends string, S extends Schema.Top, V extends S["Type"] | null>(
  name: Name,
  schema: S,
  otherwise: V,
) => ({
  name,
  body: Schema.optionalKey(Schema.NullOr(schema)),
  value: (otherwise === null ? Schema.NullOr(Schema.toType(schema)) : Schema.toType(schema)) as Schema.Codec<
    S["Type"] | V
  >,
  otherwise,
})

/** A body of these fields; `read` gives the command's fields of a decoded body. */
const bodyOf = <F extends Fields>(identifier: string, fields: F) => {
  const entries = Object.entries(fields)
  const inBody = Object.fromEntries(entries.map(([, { body, name }]) => [name, body])) as BodyFields<F>
  return {
    schema: Schema.Struct(inBody).annotate({ identifier }),
    fields: Object.fromEntries(entries.map(([key, { value }]) => [key, value])) as CommandFields<F>,
    read: (body: Schema.Struct.Type<BodyFields<F>>) =>
      Object.fromEntries(
        entries.map(([key, { name, otherwise }]) => [key, Reflect.get(body, name) ?? otherwise]),
      ) as Schema.Struct.Type<CommandFields<F>>,
  }
}

/**
 * A command that is sent twice, to the actor and to the service, has one effect and the same answer. A request with an
 * idempotency key brings the receipt, which is written with what the command does.
 */
const identified = { commandId: CommandId, receipt: Schema.optionalKey(PendingReceipt) }
const byAccount = { ...identified, accountId: AccountId }
const onTransfer = { transferId: TransferId }

const offer = bodyOf("NewDomainTransfer", {
  targetEmail: required("target_email", Schema.String),
  note: optional("note", Text(0, 1000), null),
})

export const Initiate = {
  body: offer,
  fields: { ...byAccount, ...offer.fields },
  errors: [
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
  ],
} as const

const acceptance = bodyOf("DomainTransferAcceptance", {
  // The chosen workspace, any text; null: the oldest one.
  orgId: optional("target_org_id", WorkspaceId, null),
  rotateDkim: optional("rotate_dkim", BodyBoolean, false),
})

export const Accept = {
  body: acceptance,
  fields: { ...byAccount, ...onTransfer, byToken: Schema.Boolean, ...acceptance.fields },
  errors: [
    Problems.TransferNotFound,
    InvalidCredentials,
    Problems.WrongRecipient,
    Problems.TransferExpired,
    Problems.NotPending,
    Problems.OrgAccessLost,
    Problems.DomainLimit,
    Held,
    DependencyUnavailable,
  ],
} as const

export const Decline = {
  fields: { ...byAccount, ...onTransfer },
  errors: [
    Problems.TransferNotFound,
    InvalidCredentials,
    Problems.WrongRecipient,
    Problems.NotPending,
    DependencyUnavailable,
  ],
} as const

export const Cancel = {
  fields: { ...byAccount, ...onTransfer },
  errors: [
    Problems.TransferNotFound,
    InvalidCredentials,
    Forbidden,
    Problems.NotPending,
    DependencyUnavailable,
  ],
} as const

/** By the token of a stop link alone, without an account. */
export const Stop = {
  fields: { ...identified, ...onTransfer },
  errors: [Problems.TransferNotFound, Problems.NotStoppable, DependencyUnavailable],
} as const

const forced = bodyOf("ForcedDomainTransfer", {
  targetEmail: required("target_email", Schema.String),
  rotateDkim: optional("rotate_dkim", BodyBoolean, true),
})

/** Only a platform administrator may send it: the endpoint checks that, and adds the failures of the check. */
export const Force = {
  body: forced,
  fields: { ...byAccount, ...forced.fields },
  errors: [
    Problems.TransferNotFound,
    InvalidCredentials,
    Problems.TargetNotFound,
    Problems.SelfTransfer,
    Problems.OrgAccessLost,
    Held,
    DependencyUnavailable,
  ],
} as const

interface Declared {
  readonly fields: Schema.Struct.Fields
  readonly errors: ReadonlyArray<Schema.Top>
}

type CommandOf<C extends Declared> = Schema.Struct.Type<C["fields"]>

/** The actor's address is the domain's id, so the message to the actor does not repeat it. */
interface OnDomain {
  readonly domainId: DomainId
}

export type InitiateCommand = CommandOf<typeof Initiate> & OnDomain
export type AcceptCommand = CommandOf<typeof Accept>
export type DeclineCommand = CommandOf<typeof Decline>
export type CancelCommand = CommandOf<typeof Cancel>
export type StopCommand = CommandOf<typeof Stop>
export type ForceCommand = CommandOf<typeof Force> & OnDomain

/** The failures of a declared command. */
export type FailureOf<C extends Declared> = C["errors"][number]["Type"]
