/** The actions on an authenticator that the person has: a new label, or its removal. */
import { Effect } from "effect"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import type { Authenticator } from "../Authenticators.ts"
import { changed, type Means, nothing } from "./Effected.ts"
import type { Intent } from "./Intents.ts"
import { fits, refusedFor, unavailable } from "./Rules.ts"

// The target may have been removed, or become the last second factor, since the action was started.
const targetOf = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
  const one = owned.find(({ id }) => id === intent.target_id)
  if (one === undefined || !fits(intent.kind, one)) return yield* new NotFound()
  const reason = unavailable(intent.kind, owned, one)
  return reason === null ? one : yield* refusedFor(reason, one)
})

export const factorsChanged = ({ authenticators }: Pick<Means, "authenticators">) => {
  const rename = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const one = yield* targetOf(intent, owned)
    yield* authenticators.rename(one.id, intent.label ?? one.label)
    return {
      ...nothing,
      about: `authenticator:${one.id}`,
      authenticatorId: one.id,
      happenings: [changed(one, "update")],
    }
  })

  const remove = Effect.fnUntraced(function* (intent: Intent, owned: ReadonlyArray<Authenticator>) {
    const one = yield* targetOf(intent, owned)
    yield* authenticators.remove(one.id)
    return { ...nothing, about: `authenticator:${one.id}`, happenings: [changed(one, "delete")] }
  })

  return { rename, remove }
}
