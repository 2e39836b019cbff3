/**
 * A project that the feed withdraws or removes ends as one that the API withdraws, in the feed's own transaction: nobody
 * goes on with its service grants, its client or its sessions. Of one that goes on the client is told what has changed.
 */
import { Effect, Schema } from "effect"
import { PolicyReviews } from "../requests/PolicyReviews.ts"
import type { Kind } from "../directory/Directory.ts"
import { Positions } from "../lifecycle/Positions.ts"
import { Database } from "../platform/database/Database.ts"
import { endings } from "./Projects/WithdrawCascade.ts"
import { jobQueue } from "./ProviderJobs/Queue.ts"

const Row = Schema.Struct({
  id: Schema.String,
  removed: Schema.Boolean,
  institution_id: Schema.NullOr(Schema.String),
  state: Schema.NullOr(Schema.String),
  client_id: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  redirect_uris: Schema.Array(Schema.String),
})
const rowOf = Schema.decodeUnknownSync(Schema.NullOr(Row))

/** Whether it stands at its institution; what was only removed before it was known never did. */
const stands = ({ removed, state }: typeof Row.Type) => !removed && state !== null && state !== "withdrawn"

/** What the directory says of a project's client. */
const clientOf = ({ name, redirect_uris }: typeof Row.Type) => JSON.stringify([name, redirect_uris])

const watch = Effect.gen(function* () {
  const { sql } = yield* Database
  const { end, sessions } = yield* endings
  const jobs = yield* jobQueue
  const positions = yield* Positions

  /**
   * One that is there, or about to be made, of what it was to be before. A line that names no redirect URIs takes them
   * from no client that signs people in: whoever means that ends the project.
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
          const told = history.changed?.(beforeJson, afterJson, now) ?? Effect.void
          if (before === null || !stands(before)) return yield* told
          if (stands(after)) {
            if (clientOf(before) !== clientOf(after)) yield* updateClient(after)
            return yield* told
          }
          const ending = {
            projectId: after.id,
            institutionId: before.institution_id!,
            clientId: after.client_id,
            personId: null,
            reason: "withdrawn by the directory",
          }
          yield* end(ending)
          yield* told
          yield* positions.append(...(yield* sessions(ending)))
        }),
      },
    }
  }
})

/** The same kinds, with an eye on the projects: `Directory.layer(watchingProjects(identityKinds))`. */
export const watchingProjects = <R>(register: Effect.Effect<ReadonlyArray<Kind>, never, R>) =>
  Effect.zipWith(register, watch, (kinds, watched) => kinds.map(watched)).pipe(Effect.provide(PolicyReviews.layer))
