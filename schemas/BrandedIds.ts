/**
 * The ids of the program, a type for each kind: a call that swaps two of them does not compile. Four-eyes rules depend
 * on the order of ids, and so do the parties of a transfer.
 *
 * A brand is a type only: it changes no value and no check, and the OpenAPI document does not show it. An id gets its
 * brand where it enters the program: by the contract's decoder (path, query or body), by the type of the row that is
 * read, or by the constructor, `PersonId.make(text)`, where the program makes the id.
 */
import { Schema } from "effect"
import { Id, Uuid } from "./Wire.ts"

/** A person, from the directory or made here; also the id of a person who was merged into another. */
export const PersonId = Schema.String.pipe(Schema.brand("PersonId"))
export type PersonId = typeof PersonId.Type

/** An institution, from the directory or made here. */
export const InstitutionId = Schema.String.pipe(Schema.brand("InstitutionId"))
export type InstitutionId = typeof InstitutionId.Type

/** A project, from the directory or registered here. */
export const ProjectId = Schema.String.pipe(Schema.brand("ProjectId"))
export type ProjectId = typeof ProjectId.Type

/** A person's Access to a project, from the directory or granted here. */
export const AccessId = Schema.String.pipe(Schema.brand("AccessId"))
export type AccessId = typeof AccessId.Type

/** A review of one Access version. */
export const AccessReviewId = Id.pipe(Schema.brand("AccessReviewId"))
export type AccessReviewId = typeof AccessReviewId.Type

/** The review of a request, which collects signatures. */
export const PolicyReviewId = Id.pipe(Schema.brand("PolicyReviewId"))
export type PolicyReviewId = typeof PolicyReviewId.Type

/** A request of any kind: also an enrollment, a launch proposal and a link request. */
export const RequestId = Id.pipe(Schema.brand("RequestId"))
export type RequestId = typeof RequestId.Type

/** A campaign, by which an institution has a set of Accesses looked at again. */
export const CampaignId = Id.pipe(Schema.brand("CampaignId"))
export type CampaignId = typeof CampaignId.Type

/** One Access in a campaign. */
export const CampaignItemId = Id.pipe(Schema.brand("CampaignItemId"))
export type CampaignItemId = typeof CampaignItemId.Type

/** A grant by which a service may read a project's lifecycle. */
export const ServiceGrantId = Id.pipe(Schema.brand("ServiceGrantId"))
export type ServiceGrantId = typeof ServiceGrantId.Type

/** A proof that a person holds another identity. */
export const LinkProofId = Id.pipe(Schema.brand("LinkProofId"))
export type LinkProofId = typeof LinkProofId.Type

/** A session of a person. */
export const SessionId = Id.pipe(Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type

/** A passkey, a security key, an app or a set of recovery codes of a person. */
export const AuthenticatorId = Id.pipe(Schema.brand("AuthenticatorId"))
export type AuthenticatorId = typeof AuthenticatorId.Type

/** A credential action that was started. */
export const IntentId = Id.pipe(Schema.brand("IntentId"))
export type IntentId = typeof IntentId.Type

/** A check of a person's authenticators that an issuer started. */
export const AssertionId = Id.pipe(Schema.brand("AssertionId"))
export type AssertionId = typeof AssertionId.Type

/** A job at the identity provider. */
export const ProviderJobId = Id.pipe(Schema.brand("ProviderJobId"))
export type ProviderJobId = typeof ProviderJobId.Type

/** An account of the mail platform, from the directory. */
export const AccountId = Id.pipe(Schema.brand("AccountId"))
export type AccountId = typeof AccountId.Type

/** The same id in a message; a message whose account is no UUID is refused. */
export const AccountUuid = Uuid.pipe(Schema.brand("AccountId"))

/** A webhook. */
export const WebhookId = Id.pipe(Schema.brand("WebhookId"))
export type WebhookId = typeof WebhookId.Type

/** The same id in a message; a message whose webhook is no UUID is refused. */
export const WebhookUuid = Uuid.pipe(Schema.brand("WebhookId"))

/** An email event that is stored, made here when the event is accepted. */
export const EventId = Id.pipe(Schema.brand("EventId"))
export type EventId = typeof EventId.Type

/** The id under which the mail platform sent an event: any text, and the only id by which a repeat is recognised. */
export const SourceEventId = Schema.String.pipe(Schema.brand("SourceEventId"))
export type SourceEventId = typeof SourceEventId.Type

/** A delivery of an event to a webhook; its dead letter has the same id. */
export const DeliveryId = Id.pipe(Schema.brand("DeliveryId"))
export type DeliveryId = typeof DeliveryId.Type

/** The same id in a message; a message whose delivery is no UUID is refused. */
export const DeliveryUuid = Uuid.pipe(Schema.brand("DeliveryId"))

/** A notification of an account. */
export const NotificationId = Id.pipe(Schema.brand("NotificationId"))
export type NotificationId = typeof NotificationId.Type

/** The same id in a message; a message whose notification is no UUID is refused. */
export const NotificationUuid = Uuid.pipe(Schema.brand("NotificationId"))

/** An API key. */
export const ApiKeyId = Uuid.pipe(Schema.brand("ApiKeyId"))
export type ApiKeyId = typeof ApiKeyId.Type

/** A workspace of the mail platform, from the directory: the API's `org_id`. */
export const WorkspaceId = Id.pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type

/** The same id in a message; a message whose workspace is no UUID is refused. */
export const WorkspaceUuid = Uuid.pipe(Schema.brand("WorkspaceId"))

/** A domain, from the directory. */
export const DomainId = Id.pipe(Schema.brand("DomainId"))
export type DomainId = typeof DomainId.Type

/** An SMTP credential of an account for a domain, from the directory. */
export const SmtpCredentialId = Id.pipe(Schema.brand("SmtpCredentialId"))
export type SmtpCredentialId = typeof SmtpCredentialId.Type

/** The same id in a message; a message whose credential is no UUID is refused. */
export const SmtpCredentialUuid = Uuid.pipe(Schema.brand("SmtpCredentialId"))

/** A command on a transfer, which is carried out once however often it is sent. */
export const CommandId = Schema.String.pipe(Schema.brand("CommandId"))
export type CommandId = typeof CommandId.Type

/** A transfer of a domain. */
export const TransferId = Id.pipe(Schema.brand("TransferId"))
export type TransferId = typeof TransferId.Type
