/** Handlers of the operator's plane. */
import { Effect, type Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { SqlError } from "effect/sql"
import type { PersonId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { OperatorApi } from "../../../schemas/api/OperatorApi.ts"
import { KickedDeliveries, OperatedWebhook } from "../../../schemas/identity/QueueView.ts"
import { LettersReplayed, SpanReplayed } from "../../../schemas/identity/DeadLetterView.ts"
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import { BusStatus } from "../../../services/operations/BusStatus.ts"
import { OperatorAccountNames } from "../../../services/operations/OperatorAccountNames.ts"
import { OperatorAudit } from "../../../services/operations/OperatorAudit.ts"
import { OperatorDeadLetters } from "../../../services/operations/OperatorDeadLetters.ts"
import { OperatorProjectNames } from "../../../services/operations/OperatorProjectNames.ts"
import { BusTail } from "../../../services/operations/BusTail.ts"
import { OperatorStream } from "../../../services/operations/OperatorStream.ts"
import { OperatorWebhooks } from "../../../services/operations/OperatorWebhooks.ts"
import { Queues } from "../../../services/operations/Queues.ts"
import { Findings } from "../../doctor/Findings.ts"
import { keyed } from "./IdempotentResponse.ts"
import { callerStanding } from "../auth/ManagementAuth.ts"
import { personOf } from "../auth/PersonAuth.ts"
import { eventStream } from "../edge/StreamingResponse.ts"

const Api = HttpApi.make("bailiwick").add(OperatorApi)

interface Query {
  readonly limit: string
  readonly after_id?: string
}

const pageOf = ({ after_id, limit }: Query) => ({ limit: Number(limit), afterId: after_id })

/** Milliseconds since the epoch; `Date.parse` reads what the contract takes once it is in upper case. */
const millisOf = (time: string | undefined) => time === undefined ? undefined : Date.parse(time.toUpperCase())

const spanOf = ({ event_type, since, until }: {
  readonly since: string
  readonly until?: string | null
  readonly event_type?: EventType | null
}) => ({
  since: Date.parse(since.toUpperCase()),
  until: millisOf(until ?? undefined) ?? null,
  eventType: event_type ?? undefined,
})

interface AuditConditions {
  readonly action?: string
  readonly outcome?: "done" | "refused" | "failed"
  readonly code?: string
  readonly request_id?: string
  readonly since?: string
  readonly until?: string
}

const conditionsOf = ({ action, code, outcome, request_id, since, until }: AuditConditions) => ({
  action,
  code,
  outcome,
  requestId: request_id,
  since: millisOf(since),
  until: millisOf(until),
})

/** Lets a statement's failure end the request as a fault of ours. */
const sqlDies = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catchIf(
    effect,
    (error): error is Extract<E, SqlError.SqlError> => error instanceof SqlError.SqlError,
    Effect.die,
  )

interface OnWebhook {
  readonly params: { readonly webhook_id: WebhookId }
  readonly payload: { readonly reason: string }
}

/** The handler of what an operator does to a webhook. */
const onWebhook = <A, I, E, R>(
  success: Schema.Codec<A, I>,
  command: (asked: {
    readonly personId: PersonId
    readonly webhookId: WebhookId
    readonly reason: string
  }) => Effect.Effect<A, E, R>,
) =>
  Effect.fnUntraced(function* ({ params, payload }: OnWebhook) {
    const { personId, principal } = yield* personOf
    const asked = { personId, webhookId: params.webhook_id, reason: payload.reason }
    return yield* keyed({ principal, payload, status: 200, success }, command(asked))
  })

/** The live streams, which last as long as their caller may look. */
const live = Effect.gen(function* () {
  const stream = yield* OperatorStream
  const tail = yield* BusTail
  const standingOf = yield* callerStanding
  const asking = Effect.gen(function* () {
    const { personId, principal } = yield* personOf
    return { personId, standing: standingOf(yield* HttpServerRequest.HttpServerRequest, principal) }
  })
  return {
    streamOperations: () => Effect.map(Effect.flatMap(asking, stream.open), eventStream),
    tailBus: ({ query: { subject = ">" } }: { readonly query: { readonly subject?: string } }) =>
      Effect.flatMap(asking, (request) => tail.open({ ...request, subject })).pipe(Effect.map(eventStream)),
  }
})

export const operator = HttpApiBuilder.group(
  Api,
  "operator",
  Effect.fn(function* (handlers) {
    const findings = yield* Findings
    const names = yield* OperatorAccountNames
    const projects = yield* OperatorProjectNames
    const audit = yield* OperatorAudit
    const letters = yield* OperatorDeadLetters
    const waiting = yield* Queues
    const streams = yield* BusStatus
    const webhooks = yield* OperatorWebhooks
    const { streamOperations, tailBus } = yield* live
    return handlers.handleAll({
      doctor: Effect.fnUntraced(function* () {
        return yield* findings.examine((yield* personOf).personId).pipe(sqlDies)
      }),
      listAudit: Effect.fnUntraced(function* ({ query }) {
        const filter = { ...conditionsOf(query), actor: query.actor, subject: query.subject }
        return yield* audit.list((yield* personOf).personId, filter, pageOf(query)).pipe(sqlDies)
      }),
      proveDecision: Effect.fnUntraced(function* ({ params }) {
        return yield* audit.prove((yield* personOf).personId, params.record_id).pipe(sqlDies)
      }),
      proveOwnDecision: Effect.fnUntraced(function* ({ params }) {
        return yield* audit.proveOwn((yield* personOf).personId, params.record_id).pipe(sqlDies)
      }),
      listOwnAudit: Effect.fnUntraced(function* ({ query }) {
        return yield* Effect.orDie(audit.own((yield* personOf).personId, conditionsOf(query), pageOf(query)))
      }),
      listDecisionsAboutYou: ({ query }) =>
        Effect.flatMap(personOf, ({ personId }) => audit.aboutPerson(personId, pageOf(query))).pipe(sqlDies),
      queues: () => Effect.flatMap(personOf, ({ personId }) => waiting.read(personId)).pipe(sqlDies),
      streamOperations,
      tailBus,
      busStreams: Effect.fnUntraced(function* () {
        return yield* streams.read((yield* personOf).personId).pipe(sqlDies)
      }),
      listBacklogs: Effect.fnUntraced(function* () {
        return yield* waiting.webhooks((yield* personOf).personId).pipe(sqlDies)
      }),
      pauseWebhook: onWebhook(OperatedWebhook, webhooks.pause),
      resumeWebhook: onWebhook(OperatedWebhook, webhooks.resume),
      kickWebhook: onWebhook(KickedDeliveries, webhooks.kick),
      listAccountNames: Effect.fnUntraced(function* ({ query }) {
        return yield* names.of((yield* personOf).personId, query.ids.split(",")).pipe(sqlDies)
      }),
      listProjectNames: Effect.fnUntraced(function* ({ query }) {
        return yield* projects.of((yield* personOf).personId, query.ids.split(",")).pipe(sqlDies)
      }),
      listDeadLetters: Effect.fnUntraced(function* ({ query }) {
        const { account_id, event_type, since, until, webhook_id } = query
        const span = { since: millisOf(since), until: millisOf(until) }
        const filter = { ...span, accountId: account_id, webhookId: webhook_id, eventType: event_type }
        return yield* letters.list((yield* personOf).personId, filter, pageOf(query)).pipe(sqlDies)
      }),
      countDeadLetters: Effect.fnUntraced(function* ({ query }) {
        const span = { ...spanOf(query), askedAt: millisOf(query.asked_at) }
        return yield* letters.count((yield* personOf).personId, query.webhook_id, span).pipe(sqlDies)
      }),
      replayDeadLetters: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        const { reason, webhook_id: webhookId } = payload
        const asked = { personId, reason, webhookId, span: spanOf(payload) }
        return yield* keyed({ principal, payload, status: 200, success: SpanReplayed }, letters.replaySpan(asked))
      }),
      replayDeadLetter: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        const asked = { personId, reason: payload.reason, deliveryId: params.delivery_id }
        return yield* keyed({ principal, payload, status: 200, success: LettersReplayed }, letters.replayOne(asked))
      }),
    })
  }),
)
