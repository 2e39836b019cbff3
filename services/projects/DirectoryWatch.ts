/**
 * Listens to the directory's lines about projects. A project that the feed withdraws or removes ends as one that the
 * API withdraws, in the feed's own transaction: its service grants, its client and its sessions end. For any other
 * project the provider's client is updated where the line changed it.
 */
import { Effect, Schema } from "effect"
import { InstitutionId, ProjectId } from "../../schemas/BrandedIds.ts"
import { PolicyReviews } from "../requests/PolicyReviews.ts"
import type { Kind } from "../directory/Directory.ts"
import { EventLog } from "../lifecycle/EventLog.ts"
import { Database } from "../platform/database/Database.ts"
import { endings } from "./Projects/WithdrawCascade.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"

const Row = Schema.Struct({
  id: ProjectId,
  removed: Schema.Boolean,
  institution_id: Schema.NullOr(InstitutionId),
  state: Schema.NullOr(Schema.String),
  client_id: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  redirect_uris: Schema.Array(Schema.String),
})
const rowOf = Schema.decodeUnknownSync(Schema.NullOr(Row))

/** Whether the project is in force; a row that was removed before its first line never was. */
const stands = ({ removed, state }: typeof Row.Type) => !removed && state !== null && state !== "withdrawn"

/** The members of a project's client that the directory sets. */
const clientOf = ({ name, redirect_uris }: typeof Row.Type) => JSON.stringify([name, redirect_uris])

const watch = Effect.gen(function* () {
  const { sql } = yield* Database
  const { end, sessions } = yield* endings
  const jobs = yield* jobQueue
  const eventLog = yield* EventLog

  /**
   * Adds a job that updates the project's client, where the client exists or is about to be made. A line without
   * redirect URIs does not take them from a client that signs people in: to end that, the project has to be withdrawn.
   */
  const updateClient = Effect.fnUntraced(function* ({ id, redirect_uris }: typeof Row.Type) {
    const named = redirect_uris.length > 0
    const there = yield* sql`
      select from provider_clients where project_id = ${id} and not disabled
        and (${named} or expected -> 'redirect_uris' = '[]')
      union all select from provider_jobs where project_id = ${id} and state <> 'effective' and not held
        and (${named} or coalesce(target -> 'redirect_uris', '[]') = '[]')
      limit 1`
    if (there.length > 0) yield* jobs.add({ kind: "client.update", projectId: id })
  })

  return (kind: Kind): Kind => {
    const { history } = kind
    if (kind.kind !== "project" || history === undefined) return kind
    return {
      ...kind,
      history: {
        ...history,
        changed: Effect.fnUntraced(function* (beforeJson, afterJson, now) {
          const [before, after] = [rowOf(beforeJson), rowOf(afterJson)!]
          const passOn = history.changed?.(beforeJson, afterJson, now) ?? Effect.void
          if (before === null || !stands(before)) return yield* passOn
          if (stands(after)) {
            if (clientOf(before) !== clientOf(after)) yield* updateClient(after)
            return yield* passOn
          }
          const ending = {
            projectId: after.id,
            institutionId: before.institution_id!,
            clientId: after.client_id,
            personId: null,
            reason: "withdrawn by the directory",
          }
          yield* end(ending)
          yield* passOn
          yield* eventLog.append(...(yield* sessions(ending)))
        }),
      },
    }
  }
})

/** The same kinds, with the listener on projects: `Directory.layer(watchingProjects(identityKinds))`. */
export const watchingProjects = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
  Effect.zipWith(register, watch, (kinds, watched) => kinds.map(watched)).pipe(Effect.provide(PolicyReviews.layer))
