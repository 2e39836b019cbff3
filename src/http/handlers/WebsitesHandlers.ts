/** Handlers of an institution's websites. */
import { Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { WebsitesApi } from "../../../schemas/api/WebsitesApi.ts"
import { LaunchProposal, ProjectOwners, Website, WithdrawnWebsite } from "../../../schemas/identity/Project.ts"
import { Projects } from "../../../services/projects/Projects.ts"
import { keyed } from "./IdempotentResponse.ts"
import { personIn } from "../auth/PersonAuth.ts"

const Api = HttpApi.make("bailiwick").add(WebsitesApi)

interface Query {
  readonly limit: string
  readonly after_id?: string
}

const pageOf = ({ after_id, limit }: Query) => ({ limit: Number(limit), afterId: after_id ?? null })

export const websites = HttpApiBuilder.group(
  Api,
  "websites",
  Effect.fn(function* (handlers) {
    const projects = yield* Projects
    return handlers.handleAll({
      registerWebsite: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyed(
          { principal, payload, status: 201, success: Website },
          projects.register({ ...payload, personId, institutionId: params.institution_id }),
        )
      }),
      listProjects: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* projects.list({ ...pageOf(query), personId, institutionId: params.institution_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listRequestableProjects: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* projects.requestable({ ...pageOf(query), personId, institutionId: params.institution_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      getProject: Effect.fnUntraced(function* ({ params }) {
        const { personId } = yield* personIn
        return yield* projects.read({ personId, projectId: params.project_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      withdrawWebsite: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        const asked = { ...payload, personId, institutionId: params.institution_id, projectId: params.project_id }
        return yield* keyed({ principal, payload, status: 200, success: WithdrawnWebsite }, projects.withdraw(asked))
      }),
      proposeLaunch: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyed(
          { principal, payload, status: 201, success: LaunchProposal },
          projects.proposeLaunch({ ...payload, personId, projectId: params.project_id }),
        )
      }),
      listLaunchProposals: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* projects.launches({ ...pageOf(query), personId, projectId: params.project_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listProjectOwners: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* projects.owners({ ...pageOf(query), personId, projectId: params.project_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      listProjectEvents: Effect.fnUntraced(function* ({ params, query }) {
        const { personId } = yield* personIn
        return yield* projects.events({ ...pageOf(query), personId, projectId: params.project_id }).pipe(
          Effect.catchTag("SqlError", Effect.die),
        )
      }),
      changeProjectOwner: Effect.fnUntraced(function* ({ params, payload }) {
        const { personId, principal } = yield* personIn
        return yield* keyed(
          { principal, payload, status: 200, success: ProjectOwners },
          projects.changeOwner({ ...payload, personId, projectId: params.project_id }),
        )
      }),
    })
  }),
)
