/** Handlers of what an operator decides about the whole installation. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { UpkeepApi } from "../../../schemas/api/UpkeepApi.ts"
import { InstallationState } from "../../../schemas/identity/InstallationView.ts"
import { IntakeReject } from "../../../schemas/identity/IntakeRejectView.ts"
import { OutgoingMail } from "../../../schemas/identity/MailView.ts"
import { ReleasedPerson } from "../../../schemas/identity/PersonHoldView.ts"
import { OperatorHolds } from "../../../services/operations/OperatorHolds.ts"
import { OperatorInstallation } from "../../../services/operations/OperatorInstallation.ts"
import { OperatorMails } from "../../../services/operations/OperatorMails.ts"
import { OperatorRejects } from "../../../services/operations/OperatorRejects.ts"
import { installationJson } from "../../doctor/InstallationJson.ts"
import { personOf, recently } from "../auth/PersonAuth.ts"
import { keyed } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(UpkeepApi)

const pageOf = ({ after_id, limit }: { readonly limit: string; readonly after_id?: string }) => ({
  limit: Number(limit),
  afterId: after_id,
})

export const upkeep = HttpApiBuilder.group(
  Api,
  "upkeep",
  Effect.fn(function* (handlers) {
    const installation = yield* OperatorInstallation
    const rejects = yield* OperatorRejects
    const mails = yield* OperatorMails
    const holds = yield* OperatorHolds
    return handlers.handleAll({
      installation: Effect.fnUntraced(function* () {
        const row = yield* installation.read((yield* personOf).personId).pipe(Effect.catchTag("SqlError", Effect.die))
        return installationJson(row)
      }),
      openInstallation: Effect.fnUntraced(function* ({ payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: InstallationState },
          Effect.map(installation.open({ personId, reason: payload.reason }), installationJson),
        )
      }),
      listIntakeRejects: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        const { state = "rejected", ...page } = query
        return yield* rejects.list(personId, state, pageOf(page)).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      retryIntakeReject: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: IntakeReject },
          rejects.retry({ personId, reason: payload.reason, rejectId: params.reject_id }),
        )
      }),
      discardIntakeReject: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: IntakeReject },
          rejects.discard({ personId, reason: payload.reason, rejectId: params.reject_id }),
        )
      }),
      listOutgoingMails: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        const { state = "failed", ...page } = query
        return yield* mails.list(personId, state, pageOf(page)).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      retryOutgoingMail: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: OutgoingMail },
          mails.retry({ personId, reason: payload.reason, mailId: params.mail_id }),
        )
      }),
      forgetOutgoingMail: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        return yield* keyed(
          { principal, payload, status: 200, success: OutgoingMail },
          mails.forget({ personId, reason: payload.reason, mailId: params.mail_id }),
        )
      }),
      listPersonHolds: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        return yield* holds.list(personId, pageOf(query)).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      releasePerson: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personOf
        const stepUp = yield* recently
        return yield* keyed(
          { principal, payload, status: 200, success: ReleasedPerson },
          holds.release({ personId, reason: payload.reason, heldId: params.person_id, stepUp }),
        )
      }),
    })
  }),
)
