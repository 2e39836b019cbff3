/** Handlers of campaigns. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { CampaignsApi } from "../../../schemas/api/CampaignsApi.ts"
import { CampaignDetail, CampaignItem } from "../../../schemas/identity/Campaign.ts"
import { Campaigns } from "../../../services/decisions/Campaigns.ts"
import { personIn, personOf } from "../auth/PersonAuth.ts"
import { keyed } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(CampaignsApi)

interface Query {
  readonly limit: string
  readonly after_id?: string
}

const pageOf = ({ after_id, limit }: Query) => ({ limit: Number(limit), afterId: after_id ?? null })

export const campaigns = HttpApiBuilder.group(
  Api,
  "campaigns",
  Effect.fn(function* (handlers) {
    const service = yield* Campaigns
    return handlers.handleAll({
      listCampaigns: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* service.list(personId, params.institution_id, pageOf(query)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      openCampaign: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyed(
          { principal, payload, status: 201, success: CampaignDetail },
          service.open({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
      getCampaign: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* service.read(personId, params.institution_id, params.campaign_id).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      rescheduleCampaign: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { campaign_id: campaignId, institution_id: institutionId } = params
        return yield* keyed(
          { principal, payload, status: 200, success: CampaignDetail },
          service.reschedule({ ...payload, personId, institutionId, campaignId }),
        )
      }),
      closeCampaign: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { campaign_id: campaignId, institution_id: institutionId } = params
        return yield* keyed(
          { principal, payload, status: 200, success: CampaignDetail },
          service.close({ ...payload, personId, institutionId, campaignId }),
        )
      }),
      listCampaignItems: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        const page = { ...pageOf(query), state: query.state }
        return yield* service.items(personId, params.institution_id, params.campaign_id, page).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      delegateCampaignItem: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { campaign_id: campaignId, institution_id: institutionId, item_id: itemId } = params
        const { person_id: delegate, reason } = payload
        return yield* keyed(
          { principal, payload, status: 200, success: CampaignItem },
          service.delegate({ personId, institutionId, campaignId, itemId, delegate, reason }),
        )
      }),
      answerCampaignItem: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { campaign_id: campaignId, institution_id: institutionId, item_id: itemId } = params
        return yield* keyed(
          { principal, payload, status: 200, success: CampaignItem },
          service.answer({ ...payload, personId, institutionId, campaignId, itemId }),
        )
      }),
      listOwnCampaignItems: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        return yield* service.mine(personId, pageOf(query)).pipe(Effect.orDie)
      }),
    })
  }),
)
