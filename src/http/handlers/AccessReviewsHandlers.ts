/** Handlers of `/v1/institutions/{institution_id}/access-grant-reviews` and of packs of evidence. */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { AccessReviewsApi } from "../../../schemas/api/AccessReviewsApi.ts"
import { GrantReceipt } from "../../../schemas/identity/AccessReview.ts"
import { packQuery, type PackScope } from "../../../schemas/identity/EvidencePack.ts"
import { pageLimit } from "../../../schemas/identity/ListPage.ts"
import { AccessReviews, type ReviewPage } from "../../../services/access/AccessReviews.ts"
import { EvidencePacks } from "../../../services/access/EvidencePacks.ts"
import { ifMatch } from "./IfMatch.ts"
import { keyedFenced } from "./IdempotentResponse.ts"
import { approving, personIn } from "../auth/PersonAuth.ts"

const PackQuery = Schema.Struct(packQuery)

const Api = HttpApi.make("bailiwick").add(AccessReviewsApi)

const etag = ({ evidence_digest }: typeof GrantReceipt.Encoded) => ({ etag: `"${evidence_digest}"` })

interface Query {
  readonly limit?: string
  readonly after_id?: string
  readonly after_access_id?: string
}

/** Null: the whole list, where the query asks for no page. */
const pageOf = ({ after_access_id, after_id, limit }: Query): ReviewPage | null =>
  limit === undefined && after_id === undefined && after_access_id === undefined
    ? null
    : { limit: pageLimit(limit), afterId: after_id ?? null, afterAccessId: after_access_id ?? null }

/** Null where the query leaves a condition out. */
const scopeOf = ({ person_id, review_id, since, until }: typeof PackQuery.Type): PackScope => ({
  person_id: person_id ?? null,
  review_id: review_id ?? null,
  since: since?.toUpperCase() ?? null,
  until: until?.toUpperCase() ?? null,
})

export const accessReviews = HttpApiBuilder.group(
  Api,
  "access-grant-reviews",
  Effect.fn(function* (handlers) {
    const reviews = yield* AccessReviews
    const packs = yield* EvidencePacks
    return handlers.handleAll({
      listAccessGrantReviews: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        const listed = yield* reviews.list(personId, params.institution_id, pageOf(query)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
        return HttpServerResponse.uint8Array(listed, { contentType: "application/json" })
      }),
      getAccessGrantReview: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* reviews.one(personId, params.institution_id, params.review_id).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      getAccessGrantEvidence: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* reviews.evidence(personId, params.institution_id, params.review_id).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      getEvidencePack: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* packs.part({
          ...scopeOf(query),
          personId,
          institutionId: params.institution_id,
          after: query.after,
        })
      }),
      proposeAccessGrantReview: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyedFenced(
          { principal, payload, status: 201, success: GrantReceipt, headers: etag },
          reviews.propose({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
      approveAccessGrantReview: Effect.fnUntraced(function* ({ params, payload, query }) {
        const { personId, principal } = yield* personIn
        const decision = {
          personId,
          institutionId: params.institution_id,
          reviewId: params.review_id,
          reason: payload.reason,
          seen: yield* ifMatch,
          stepUp: yield* approving,
        }
        return yield* keyedFenced(
          { principal, payload, status: 200, success: GrantReceipt, headers: etag, dryRun: query.dry_run },
          reviews.approve(decision),
        )
      }),
      revokeAccessGrantReview: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const decision = {
          personId,
          institutionId: params.institution_id,
          reviewId: params.review_id,
          reason: payload.reason,
          seen: yield* ifMatch,
        }
        return yield* keyedFenced(
          { principal, payload, status: 200, success: GrantReceipt, headers: etag },
          reviews.revoke(decision),
        )
      }),
    })
  }),
)
