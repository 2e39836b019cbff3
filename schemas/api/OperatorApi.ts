/** The operator's plane: what `cli` shows and does, for operators over HTTP (docs/api/identity.md; extras). */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DeliveryId, WebhookId } from "../BrandedIds.ts"
import { AccountNames, askedAccounts } from "../identity/AccountName.ts"
import {
  aboutPersonQuery,
  AuditPage,
  auditQuery,
  DecisionProofView,
  DecisionsAboutPerson,
  OwnAuditPage,
  ownAuditQuery,
} from "../identity/AuditView.ts"
import {
  countQuery,
  DeadLetterPage,
  deadLetterQuery,
  DeadLetterReplay,
  LettersReplayed,
  SpanReplayed,
} from "../identity/DeadLetterView.ts"
import { ReasonBody } from "../identity/DecisionReason.ts"
import { DoctorReport } from "../identity/DoctorReport.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { KickedDeliveries, OperatedWebhook, Queues, WebhookBacklogs } from "../identity/QueueView.ts"
import { askedProjects, ProjectNames } from "../identity/ProjectName.ts"
import { busTailQuery } from "../identity/BusTailView.ts"
import { BusReport } from "../identity/StreamReportView.ts"
import { Id } from "../Wire.ts"
import { NotFound, RateLimited } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { InvalidState, RoleRequired } from "../problems/IdentityProblems.ts"
import { Managed } from "./ManagementApi.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

/** `text/event-stream` (HTML Living Standard, 9.2). */
const Events = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })).annotate({
  description: "Events `queues`, `backlogs`, `dead-letters` and `findings`; each has the whole state of its subject",
})

/** Data of `messages`: schemas/identity/BusTailView.ts. */
const TailEvents = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })).annotate({
  description:
    "Event `following`, with `subject` and the `streams` that take it, once the stream begins; then events " +
    "`messages` with `items` (`at`, `stream`, `seq`, `subject`, `bytes`, `payload`, `cut`), `skipped` and `reached`",
})

export class OperatorApi extends HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("doctor", "/v1/operations/doctor", { success: DoctorReport, error: RoleRequired })
      .annotate(OpenApi.Summary, "Checks configuration, database, keys and broker, and says what to do; for operators"),
    HttpApiEndpoint.get("listAudit", "/v1/operations/audit", {
      query: auditQuery,
      success: AuditPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "The audit of all accounts and people, newest first, for operators and auditors"),
    HttpApiEndpoint.get("proveDecision", "/v1/operations/audit/:record_id/proof", {
      params: { record_id: Id },
      success: DecisionProofView,
      error: [NotFound, RoleRequired],
    }).annotate(OpenApi.Summary, "The proof that a decision is in the transparency log, for operators and auditors"),
    HttpApiEndpoint.get("listOwnAudit", "/v1/me/audit", {
      query: ownAuditQuery,
      success: OwnAuditPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "What you did and tried, newest first"),
    HttpApiEndpoint.get("proveOwnDecision", "/v1/me/audit/:record_id/proof", {
      params: { record_id: Id },
      success: DecisionProofView,
      error: [NotFound, RoleRequired],
    }).annotate(OpenApi.Summary, "The proof that a decision of yours is in the transparency log"),
    HttpApiEndpoint.get("listDecisionsAboutYou", "/v1/me/decisions", {
      query: aboutPersonQuery,
      success: DecisionsAboutPerson,
      error: RoleRequired,
    }).annotate(
      OpenApi.Summary,
      "Decisions about you, newest first, with the proof that each is in the transparency log",
    ),
    HttpApiEndpoint.get("listDeadLetters", "/v1/operations/dead-letters", {
      query: deadLetterQuery,
      success: DeadLetterPage,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Dead letters of all accounts, newest delivery first, for operators"),
    HttpApiEndpoint.get("countDeadLetters", "/v1/operations/dead-letters/replay", {
      query: countQuery,
      success: LettersReplayed,
      error: [NotFound, RoleRequired],
    }).annotate(OpenApi.Summary, "Count the dead letters that a replay of this span would send again, and send none"),
    HttpApiEndpoint.post("replayDeadLetters", "/v1/operations/dead-letters/replay", {
      headers: optionallyKeyed,
      payload: DeadLetterReplay,
      success: SpanReplayed,
      error: [NotFound, RoleRequired, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Send a webhook's dead letters of a span again, in the background, as an operator"),
    HttpApiEndpoint.post("replayDeadLetter", "/v1/operations/dead-letters/:delivery_id/replay", {
      params: { delivery_id: DeliveryId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: LettersReplayed,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Send one dead letter again, as an operator"),
    HttpApiEndpoint.get("queues", "/v1/operations/queues", { success: Queues, error: RoleRequired })
      .annotate(OpenApi.Summary, "Every queue: what waits, what is due and since when, for operators"),
    HttpApiEndpoint.get("streamOperations", "/v1/operations/stream", {
      success: Events,
      error: [RateLimited, RoleRequired],
    }).annotate(OpenApi.Summary, "Follow queues, backlogs, dead letters and findings live, for operators"),
    HttpApiEndpoint.get("tailBus", "/v1/operations/tail", {
      query: busTailQuery,
      success: TailEvents,
      error: [RateLimited, RoleRequired],
    }).annotate(OpenApi.Summary, "Follow the messages that pass on the bus, for operators"),
    HttpApiEndpoint.get("busStreams", "/v1/operations/streams", { success: BusReport, error: RoleRequired })
      .annotate(OpenApi.Summary, "The broker's streams and how far their consumers are, for operators"),
    HttpApiEndpoint.get("listBacklogs", "/v1/operations/webhooks", {
      query: { sort: Schema.optionalKey(Schema.Literals(["backlog"])) },
      success: WebhookBacklogs,
      error: RoleRequired,
    }).annotate(
      OpenApi.Summary,
      "The 20 webhooks with the most deliveries that wait, and those that an operator paused; for operators",
    ),
    HttpApiEndpoint.post("pauseWebhook", "/v1/operations/webhooks/:webhook_id/pause", {
      params: { webhook_id: WebhookId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: OperatedWebhook,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Pause any account's webhook, so that the account cannot resume it, as an operator"),
    HttpApiEndpoint.post("resumeWebhook", "/v1/operations/webhooks/:webhook_id/resume", {
      params: { webhook_id: WebhookId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: OperatedWebhook,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Resume a webhook that an operator or the program paused, as an operator"),
    HttpApiEndpoint.post("kickWebhook", "/v1/operations/webhooks/:webhook_id/kick", {
      params: { webhook_id: WebhookId },
      headers: optionallyKeyed,
      payload: ReasonBody,
      success: KickedDeliveries,
      error: [NotFound, RoleRequired, InvalidState, ...receiptProblems],
    }).annotate(OpenApi.Summary, "Make up to 1,000 deliveries that wait for a webhook due now, as an operator"),
    HttpApiEndpoint.get("listAccountNames", "/v1/operations/accounts", {
      query: { ids: askedAccounts },
      success: AccountNames,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Names of mail accounts, for operators; unknown ids are left out"),
    HttpApiEndpoint.get("listProjectNames", "/v1/operations/projects", {
      query: { ids: askedProjects },
      success: ProjectNames,
      error: RoleRequired,
    }).annotate(OpenApi.Summary, "Names of projects, for operators and auditors; unknown ids are left out"),
  )
  .middleware(RequestValidation)
  .middleware(Managed)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(OpenApi.annotations({
    title: "Operator",
    description: "What an operator sees and does in the whole installation.",
  })) {}
