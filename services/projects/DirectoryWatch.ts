/**
 * A project that the feed withdraws or removes ends as one that the API withdraws, in the feed's own transaction: nobody
 * goes on with its service grants, its client or its sessions.
 */
import { Effect, Schema } from "effect"
import { PolicyReviews } from "../access/PolicyReviews.ts"
import type { Kind } from "../directory/Directory.ts"
import { Positions } from "../lifecycle/Positions.ts"
import { endings } from "./Projects/endings.ts"

const Row = Schema.Struct({
  id: Schema.String,
  removed: Schema.Boolean,
  institution_id: Schema.NullOr(Schema.String),
  state: Schema.NullOr(Schema.String),
  client_id: Schema.NullOr(Schema.String),
})
const rowOf = Schema.decodeUnknownSync(Schema.NullOr(Row))

/** Whether it stands at its institution; what was only removed before it was known never did. */
const stands = ({ removed, state }: typeof Row.Type) => !removed && state !== null && state !== "withdrawn"

const watch = Effect.gen(function* () {
  const { end, sessions } = yield* endings
  const positions = yield* Positions
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
          if (before === null || !stands(before) || stands(after)) return yield* told
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
