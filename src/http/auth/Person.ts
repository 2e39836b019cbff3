/** The person behind a request of the identity API, for operations that only people perform. */
import { Context, Effect } from "effect"
import { Caller } from "../../../schemas/api/Management.ts"
import { NotFound } from "../../../schemas/problems/Floor.ts"
import { roleRequired } from "../../../services/people/Roles.ts"
import { check } from "../../../services/people/StepUp.ts"

const person = <E>(refusal: () => E) =>
  Effect.flatMap(
    Caller,
    (caller) =>
      caller.personId === null ? Effect.fail(refusal()) : Effect.succeed({ ...caller, personId: caller.personId }),
  )

/** Where something is looked up: to a service it does not exist. */
export const personIn = person(() => new NotFound())

/** Where nothing is looked up but one's own. */
export const personOf = person(() => roleRequired("a person: a service has nothing of its own here"))

/** How fresh a sign-in approvals need, in whole seconds (`MANAGEMENT_APPROVAL_MAX_AGE`); null: any. */
export class ApprovalMaxAge extends Context.Reference<number | null>("bailiwick/http/auth/Person/ApprovalMaxAge", {
  defaultValue: () => null,
}) {}

/** The step-up that an approval asks of the caller; to be run where the order of checks has it. */
export const approving = Effect.gen(function* () {
  const caller = yield* Caller
  const maxAgeSeconds = yield* ApprovalMaxAge
  return check(caller, { maxAgeSeconds, aal: null })
})
