/** Handlers of institutions and of people's names. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { InstitutionsApi } from "../../../schemas/api/InstitutionsApi.ts"
import { AccessEnd } from "../../../schemas/identity/AccessEnd.ts"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { Institutions } from "../../../services/access/Institutions.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { PersonNames } from "../../../services/people/PersonNames.ts"
import { personIn, personOf } from "../auth/PersonAuth.ts"
import { keyed } from "./IdempotentResponse.ts"

const Api = HttpApi.make("bailiwick").add(InstitutionsApi)

interface Query {
  readonly limit: string
  readonly after_id?: string
}

const pageOf = ({ after_id, limit }: Query) => ({ limit: Number(limit), afterId: after_id ?? null })

export const institutions = HttpApiBuilder.group(
  Api,
  "institutions",
  Effect.fn(function* (handlers) {
    const service = yield* Institutions
    const enrollments = yield* Enrollments
    const names = yield* PersonNames
    const ends = yield* AccessEnds
    return handlers.handleAll({
      listInstitutions: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        return yield* service.list(personId, pageOf(query)).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      getInstitution: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* service.read(personId, params.institution_id).pipe(Effect.catchTag("SqlError", Effect.die))
      }),
      listMembers: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* service.members(personId, params.institution_id, pageOf(query)).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listEnrollments: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* enrollments.list({ ...pageOf(query), personId, institutionId: params.institution_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listAccess: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        const at = query.at === undefined ? {} : { at: Date.parse(query.at.toUpperCase()) }
        return yield* service.access(personId, params.institution_id, { ...pageOf(query), ...at }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      explainAccess: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* service.explain(personId, params.institution_id, params.access_id).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      shortenAccess: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const { access_id: accessId, institution_id: institutionId } = params
        return yield* keyed(
          { principal, payload, status: 200, success: AccessEnd },
          ends.shorten({ ...payload, accessId, institutionId, personId }),
        )
      }),
      listPersonNames: Effect.fnUntraced(function* ({ query }) {
        const { personId } = yield* personOf
        return { items: yield* Effect.orDie(names.of(personId, query.ids.split(","))) }
      }),
    })
  }),
)
