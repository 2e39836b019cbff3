/** Handlers of `/v1/me`. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { MeApi } from "../../../schemas/api/MeApi.ts"
import { actionTable, FinishedAction, StartedAction } from "../../../schemas/identity/CredentialAction.ts"
import { Authenticators, viewOf } from "../../../services/people/Authenticators.ts"
import { CredentialActions, loadFor, ProofRejected, wellFormed } from "../../../services/people/CredentialActions.ts"
import { NoticeSettings } from "../../../services/decisions/NoticeSettings.ts"
import { People } from "../../../services/people/People.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { Sessions } from "../../../services/people/Sessions.ts"
import { SessionActivity } from "../../../services/people/SessionActivity.ts"
import { addFastRead } from "../edge/FastReads.ts"
import { keyed } from "./IdempotentResponse.ts"
import type { Rates } from "../auth/Limits.ts"
import { answerPerson } from "../auth/ManagementAuth.ts"
import { ApprovalMaxAge, personOf } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(MeApi)

/** The result without its secrets, for the receipt: they are shown only once. */
const withoutSecrets = (started: StartedAction): StartedAction =>
  started.challenge.type === "totp"
    ? { ...started, challenge: { type: "totp", otpauth_uri: null, secret: null } }
    : started

const withoutCodes = (finished: FinishedAction): FinishedAction => ({ ...finished, recovery_codes: null })

export const me = HttpApiBuilder.group(
  Api,
  "me",
  Effect.fn(function* (handlers) {
    const actions = yield* CredentialActions
    const authenticators = yield* Authenticators
    const notices = yield* NoticeSettings
    const people = yield* People
    const sessions = yield* Sessions
    const sightings = yield* SessionActivity
    return handlers.handleAll({
      me: Effect.fnUntraced(function* () {
        const { personId } = yield* personOf
        return HttpServerResponse.text(yield* people.account(personId), { contentType: "application/json" })
      }),
      freshness: Effect.fnUntraced(function* () {
        return yield* actions.freshness(yield* personOf, yield* ApprovalMaxAge)
      }),
      listSessions: Effect.fnUntraced(function* () {
        return yield* sessions.list(yield* personOf)
      }),
      listAuthenticators: Effect.fnUntraced(function* () {
        const owned = yield* Effect.orDie(authenticators.of((yield* personOf).personId))
        return { items: owned.map((one) => viewOf(one, owned)), total: owned.length }
      }),
      credentialCapabilities: Effect.fnUntraced(function* () {
        return yield* actions.capabilities(yield* personOf)
      }),
      startCredentialAction: Effect.fnUntraced(function* ({ headers, payload }) {
        const caller = yield* personOf
        yield* wellFormed(payload)
        yield* loadFor(actionTable[payload.kind].proof)
        return yield* keyed(
          { principal: caller.principal, payload, status: 201, success: StartedAction, keep: withoutSecrets },
          actions.start(caller, payload, headers["x-portal-binding"]),
        )
      }),
      completeCredentialAction: Effect.fnUntraced(function* ({ headers, params, payload }) {
        const caller = yield* personOf
        yield* loadFor(payload.proof.type)
        // Products hear of an ended session only where it has a row: write pending session rows first.
        yield* sightings.settle(caller.personId)
        return yield* keyed(
          { principal: caller.principal, payload, status: 200, success: FinishedAction, keep: withoutCodes },
          actions.complete(caller, params.intent_id, payload.proof, headers["x-portal-binding"]),
        ).pipe(
          Effect.catchIf(
            (error): error is ProofRejected => error instanceof ProofRejected,
            (rejected) => Effect.flatMap(actions.refuse(caller, rejected), Effect.fail),
          ),
        )
      }),
      noticeSettings: Effect.fnUntraced(function* () {
        return { delivery: yield* Effect.orDie(notices.deliveryOf((yield* personOf).personId)) }
      }),
      setNoticeSettings: Effect.fnUntraced(function* ({ payload }) {
        const { personId } = yield* personOf
        yield* Effect.orDie(run(notices.setDelivery(personId, payload.delivery)))
        return payload
      }),
    })
  }),
)

/** `GET /v1/me` as a fast read: a portal calls it with every page. */
export const fastMe = (rates: Rates) =>
  Layer.effectDiscard(Effect.gen(function* () {
    const people = yield* People
    yield* addFastRead(MeApi, MeApi.endpoints.me, yield* answerPerson(rates, people.own))
  }))
