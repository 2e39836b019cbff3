/**
 * Every message on the broker's streams: its channel, who says it and what it holds. `/v1/asyncapi.json` is made of this
 * table alone (docs/subscribing.md).
 */
import { Schema } from "effect"
import { type LifecycleEventKind, lifecycleEventKinds } from "../identity/LifecycleEventKinds.ts"
import * as Identity from "../identity/IdentityDirectory.ts"
import * as Mail from "../mail/MailDirectory.ts"
import { MailEvent } from "../mail/MailEvent.ts"
import { Announcement } from "./Announcement.ts"
import type { StreamName } from "./BusStreams.ts"
import { AuthenticatorRemoved, DomainMoved, KeyRevoked, MembershipDecided, SmtpCredentialRevoked } from "./Decisions.ts"
import { DirectoryEnvelope, type IdentityKindName, type MailKindName } from "./DirectoryMessages.ts"
import { claimsOf } from "./LifecycleClaims.ts"
import { CheckpointMessage } from "./LogMessage.ts"
import { MailAnnouncement } from "./MailAnnouncement.ts"
import { NotificationAnnounced, NotificationMessage } from "./NotificationMessage.ts"
import { TransferMessage } from "./TransferMessage.ts"
import { AttemptReports, DeadLetterMessage } from "./WebhookMessages.ts"

export interface MessageSpec {
  readonly title: string
  /** Of the payload; of the claims, where the payload is a signed token. */
  readonly schema: Schema.Top
}

export interface ChannelSpec {
  readonly stream: StreamName
  /** The subject; a name in braces stands for one token. */
  readonly address: string
  readonly title: string
  readonly description: string
  /** `internal`: between processes of the program, no other may read or write it. */
  readonly by: "program" | "publishers" | "internal"
  /** The meaning of each token in braces. */
  readonly parameters: Readonly<Record<string, string>>
  readonly messages: Readonly<Record<string, MessageSpec>>
  /** In order of `Bailiwick-Seq` for each value of this parameter. */
  readonly orderedBy?: string
  /** Payloads are compact JWS of `application/secevent+jwt`. */
  readonly signed?: true
}

const { id: _id, kind: _kind, removed: _removed, ...envelope } = DirectoryEnvelope.fields

/** A line of the directory: the whole new state of one thing, or its removal. */
const lineOf = (kind: string, id: Schema.Top, fields: Schema.Struct.Fields): MessageSpec => {
  const named = { kind: Schema.Literal(kind), id, ...envelope }
  const removed = Schema.Struct({ ...named, removed: Schema.Literal(true) })
  const state = Schema.Struct({
    ...named,
    removed: Schema.optionalKey(Schema.NullOr(Schema.Literal(false))),
    ...fields,
  })
  return { title: `A ${kind.replaceAll("_", " ")}, or its removal`, schema: Schema.Union([state, removed]) }
}

const mailFields: Readonly<Record<MailKindName, Schema.Struct.Fields>> = {
  account: Mail.AccountFields.fields,
  workspace: Mail.WorkspaceFields.fields,
  workspace_membership: Mail.WorkspaceMembershipFields.fields,
  domain: Mail.DomainFields.fields,
  broadcast: Mail.BroadcastFields.fields,
  scheduled_email: Mail.ScheduledEmailFields.fields,
  smtp_credential: Mail.SmtpCredentialFields.fields,
}

const identityFields: Readonly<Record<IdentityKindName, Schema.Struct.Fields>> = {
  person: Identity.PersonFields.fields,
  institution: Identity.InstitutionFields.fields,
  institution_membership: Identity.InstitutionMembershipFields.fields,
  project: Identity.ProjectFields.fields,
  project_link: Identity.ProjectLinkFields.fields,
  project_owner: Identity.ProjectOwnerFields.fields,
  access: Identity.AccessFields.fields,
}

const lines = (kinds: Readonly<Record<string, Schema.Struct.Fields>>, id: Schema.Top) =>
  Object.fromEntries(Object.entries(kinds).map(([kind, fields]) => [kind, lineOf(kind, id, fields)]))

const lifecycleMessages = Object.fromEntries(
  Object.keys(lifecycleEventKinds).map((kind): [string, MessageSpec] => [
    kind,
    { title: `Event ${kind}`, schema: claimsOf(kind as LifecycleEventKind) },
  ]),
)

export const busChannels: Readonly<Record<string, ChannelSpec>> = {
  mailEvents: {
    stream: "EVENTS",
    address: "intake.v1.mail-events.{event}",
    title: "Email events",
    description:
      "What happened to an email, from the mail platform. An `id` that its account has sent before is dropped.",
    by: "publishers",
    parameters: { event: "The event type without `email.`: `delivered`, `bounced`" },
    messages: { mailEvent: { title: "An email event", schema: MailEvent } },
  },
  notificationRequests: {
    stream: "EVENTS",
    address: "intake.v1.notifications",
    title: "Notifications for accounts",
    description: "A notification that a service wants an account to get. A known `id` is dropped.",
    by: "publishers",
    parameters: {},
    messages: { notificationRequest: { title: "A notification to make", schema: NotificationMessage } },
  },
  mailDirectory: {
    stream: "DIRECTORY_IN",
    address: "intake.v1.directory.{kind}",
    title: "Directory of the mail platform",
    description: "Versioned states. The highest `version` of a kind and id counts, in whatever order they come.",
    by: "publishers",
    parameters: { kind: "The line's `kind`" },
    messages: lines(mailFields, Mail.FeedId),
  },
  identityDirectory: {
    stream: "DIRECTORY_IN",
    address: "intake.v1.identity-directory.{kind}",
    title: "Directory of identity management",
    description: "Versioned states. `IDENTITY_DIRECTORY` says what of them the program takes.",
    by: "publishers",
    parameters: { kind: "The line's `kind`" },
    messages: lines(identityFields, Identity.AccessFields.fields.person_id),
  },
  retries: {
    stream: "DELIVERIES",
    address: "webhooks.v1.retry.{webhook_id}",
    title: "Due retries",
    description: "Deliveries that may be due, for the process that has room for them.",
    by: "internal",
    parameters: { webhook_id: "The webhook" },
    messages: { retry: { title: "Deliveries that may be due", schema: Announcement } },
  },
  attempts: {
    stream: "RESULTS",
    address: "webhooks.v1.attempts.{webhook_id}",
    title: "Attempts at webhooks",
    description: "Attempts of a short interval, best effort: a report that cannot be published is not kept.",
    by: "program",
    parameters: { webhook_id: "The webhook" },
    messages: { attempts: { title: "Attempts at one webhook", schema: AttemptReports } },
  },
  deadLetters: {
    stream: "DEAD_LETTERS",
    address: "webhooks.v1.dead.{webhook_id}",
    title: "Dead letters",
    description: "Deliveries that failed for good.",
    by: "program",
    parameters: { webhook_id: "The webhook" },
    messages: { deadLetter: { title: "A delivery that failed for good", schema: DeadLetterMessage } },
  },
  transfers: {
    stream: "TRANSFERS",
    address: "transfers.v1.{domain_id}.{status}",
    title: "Transfers of domains",
    description: "A transfer after each of its transitions.",
    by: "program",
    parameters: { domain_id: "The domain", status: "The transfer's new status" },
    orderedBy: "domain_id",
    messages: { transfer: { title: "A transfer after a transition", schema: TransferMessage } },
  },
  lifecycle: {
    stream: "LIFECYCLE",
    address: "lifecycle.v1.{project_id}.{kind}",
    title: "Lifecycle of projects",
    description: "The signed events of a project's history. No service grant is asked here.",
    by: "program",
    parameters: { project_id: "The project", kind: "The event's kind, the message's name here" },
    orderedBy: "project_id",
    signed: true,
    messages: lifecycleMessages,
  },
  notifications: {
    stream: "NOTIFICATIONS",
    address: "notifications.v1.{account_id}.{category}",
    title: "Notifications that accounts got",
    description: "Without body and address.",
    by: "program",
    parameters: { account_id: "The account", category: "The notification's category" },
    messages: { notification: { title: "A notification", schema: NotificationAnnounced } },
  },
  mails: {
    stream: "MAIL_OUT",
    address: "mailer.v1.send",
    title: "Mails that wait",
    description: "Ids of mails, for the process that sends them.",
    by: "internal",
    parameters: {},
    messages: { mails: { title: "Mails that wait", schema: MailAnnouncement } },
  },
  decisions: {
    stream: "DIRECTORY",
    address: "directory.v1.{kind}.{id}",
    title: "Decisions for the mail platform",
    description: "What the program decided about things of the directory: ids, states and times.",
    by: "program",
    parameters: { kind: "The payload's `kind`, the message's name here", id: "The payload's `id`" },
    messages: {
      api_key: { title: "An API key was revoked", schema: KeyRevoked },
      authenticator: { title: "An authenticator was removed", schema: AuthenticatorRemoved },
      domain: { title: "A domain changed hands", schema: DomainMoved },
      institution_membership: { title: "A membership has a new state", schema: MembershipDecided },
      smtp_credential: { title: "An SMTP credential was revoked", schema: SmtpCredentialRevoked },
    },
  },
  decisionLog: {
    stream: "DECISION_LOG",
    address: "log.v1.checkpoint",
    title: "Checkpoints of the transparency log",
    description:
      "A signed checkpoint before it is served, with the entries since the one before, which say nothing of " +
      "what was decided.",
    by: "internal",
    parameters: {},
    messages: { checkpoint: { title: "A checkpoint and its entries", schema: CheckpointMessage } },
  },
}
