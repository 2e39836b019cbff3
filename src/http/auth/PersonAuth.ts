/** The person behind a request of the identity API, for operations that only people perform. */
import { Context, Effect } from "effect"
import { Caller } from "../../../schemas/api/ManagementApi.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { roleRequired } from "../../../services/people/Roles.ts"
import { check } from "../../../services/people/StepUp.ts"

const person = <E>(refusal: () => E) =>
  Effect.flatMap(
    Caller,
    (caller) =>
      caller.personId === null ? Effect.fail(refusal()) : Effect.succeed({ ...caller, personId: caller.personId }),
  )

/** For operations on an addressed object, which for a service does not exist (404). */
export const personIn = person(() => new NotFound())

/** For operations on the caller's own data. */
export const personOf = person(() => roleRequired("a person: a service has nothing of its own here"))

/** The highest age of an approval's sign-in, in seconds (`MANAGEMENT_APPROVAL_MAX_AGE`); null: any age. */
export class ApprovalMaxAge extends Context.Reference<number | null>("bailiwick/http/auth/PersonAuth/ApprovalMaxAge", {
  defaultValue: () => null,
}) {}

/** The step-up check of an approval. The command runs it at its place in the order of checks. */
export const approving = Effect.gen(function* () {
  const caller = yield* Caller
  const maxAgeSeconds = yield* ApprovalMaxAge
  return check(caller, { maxAgeSeconds, aal: null })
})

/** The greatest age of the sign-in for an act that reaches far or cannot be undone, in seconds. */
const recentSeconds = 300

/** The step-up check of such a command, which runs it at its place in the order of checks. */
export const recently = Effect.map(Caller, (caller) => check(caller, { maxAgeSeconds: recentSeconds, aal: null }))
