/** Domain transfers (docs/transfers.md): `/v1/domains/{id}/transfer`, `/v1/domain-transfers`, an administrator's force. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DomainId, TransferId } from "../BrandedIds.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { Accept, Cancel, Decline, Force, Initiate, Stop } from "../mail/DomainCommands.ts"
import {
  AcceptEligibility,
  DomainDkim,
  DomainTransfer,
  DomainTransferPage,
  PlatformTransferPage,
  TransferStatus,
} from "../mail/Transfer.ts"
import { DependencyUnavailable, Forbidden, InvalidCredentials } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { InsufficientUserAuthentication } from "../problems/IdentityProblems.ts"
import { TransferNotFound } from "../problems/TransferProblems.ts"
import { ListFilter } from "../Validation/Scalars.ts"
import { cursorPage } from "./AccountApi.ts"
import { Authenticated, Presented } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

const transferId = { transfer_id: TransferId }
const domainId = { domain_id: DomainId }

const domainName = ListFilter([]).annotate({
  "x-wire": { type: "string", description: "Of this domain alone, in any letter case" },
})

export class TransfersApi extends HttpApiGroup.make("transfers")
  .add(
    HttpApiEndpoint.post("initiateTransfer", "/v1/domains/:domain_id/transfer", {
      params: domainId,
      payload: Initiate.body.schema,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Initiate.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Offer a domain to another account; it is mailed an accept link"),
    HttpApiEndpoint.get("getDomainDkim", "/v1/domains/:domain_id/dkim", {
      params: domainId,
      success: DomainDkim,
      error: [TransferNotFound, InvalidCredentials, DependencyUnavailable],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "The domain's DKIM key and the one that an accepted transfer brings, for its parties"),
    HttpApiEndpoint.get("listIncomingTransfers", "/v1/domain-transfers/incoming", {
      success: Schema.Array(DomainTransfer),
      error: [InvalidCredentials, DependencyUnavailable],
    }).middleware(RequestValidation).middleware(Presented)
      .annotate(OpenApi.Summary, "List the transfers to you that are pending or accepted"),
    HttpApiEndpoint.get("listOutgoingTransfers", "/v1/domain-transfers/outgoing", {
      success: Schema.Array(DomainTransfer),
      error: [InvalidCredentials, DependencyUnavailable],
    }).middleware(RequestValidation).middleware(Presented)
      .annotate(OpenApi.Summary, "List the transfers that you initiated, most recent first"),
    HttpApiEndpoint.get("listReceivedTransfers", "/v1/domain-transfers/received", {
      query: cursorPage,
      success: DomainTransferPage,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "List the transfers to you that have ended, most recent first"),
    HttpApiEndpoint.get("acceptEligibility", "/v1/domain-transfers/accept-eligibility", {
      success: AcceptEligibility,
      error: InvalidCredentials,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Whether you could accept a domain now; decided again on accept"),
    HttpApiEndpoint.get("getTransfer", "/v1/domain-transfers/:transfer_id", {
      params: transferId,
      success: DomainTransfer,
      error: [TransferNotFound, DependencyUnavailable],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Read one transfer as a party of it, also one that has ended"),
    HttpApiEndpoint.post("acceptTransfer", "/v1/domain-transfers/:token/accept", {
      params: { token: Schema.String },
      payload: Accept.body.schema,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Accept.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Accept by the token of the invitation; the safety window begins"),
    HttpApiEndpoint.post("acceptTransferById", "/v1/domain-transfers/by-id/:transfer_id/accept", {
      params: transferId,
      payload: Accept.body.schema,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Accept.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Accept a transfer that is addressed to your account's email"),
    HttpApiEndpoint.post("declineTransfer", "/v1/domain-transfers/:transfer_id/decline", {
      params: transferId,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Decline.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Decline a transfer as its recipient",
    ),
    HttpApiEndpoint.delete("cancelTransfer", "/v1/domain-transfers/:transfer_id", {
      params: transferId,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Cancel.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(OpenApi.Summary, "Take a pending offer back"),
    HttpApiEndpoint.post("stopTransfer", "/v1/domain-transfers/stop/:stop_token", {
      params: { stop_token: Schema.String },
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [...Stop.errors, ...receiptProblems],
    }).middleware(RequestValidation)
      .annotate(OpenApi.Summary, "Stop an accepted transfer within its safety window; the token alone authorizes"),
    HttpApiEndpoint.get("listAllTransfers", "/v1/admin/domain-transfers", {
      query: {
        ...cursorPage,
        status: Schema.optionalKey(Schema.Literals(TransferStatus.literals)),
        name: Schema.optionalKey(domainName),
      },
      success: PlatformTransferPage,
      error: Forbidden,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "List the transfers of all accounts, most recent first, as a platform administrator"),
    HttpApiEndpoint.post("forceTransfer", "/v1/admin/domain-transfers/:domain_id", {
      params: domainId,
      payload: Force.body.schema,
      headers: optionallyKeyed,
      success: DomainTransfer,
      error: [Forbidden, InsufficientUserAuthentication, ...Force.errors, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Move a domain at once, as a platform administrator who has just signed in"),
  )
  .annotateMerge(OpenApi.annotations({
    title: "Domain transfers",
    description: "A domain changes hands by a handshake of two sides and a safety window.",
  })) {}
