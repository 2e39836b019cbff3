/**
 * Assertions: an issuer that signs people in has checked here what they have enrolled here (docs/api/identity.md). An
 * assertion is started for a subject of that issuer and checked by a signature, a one-time code or a recovery code, each
 * of which counts once.
 *
 * Of a person who is not known nothing is told: the assertion is made, refused, limited and locked like that of a
 * person who has nothing enrolled.
 */
import { Context, Effect, Layer } from "effect"
import type { AssertionId } from "../../schemas/BrandedIds.ts"
import type {
  AssertionProof,
  CheckedAssertion,
  StartAssertion,
  StartedAssertion,
} from "../../schemas/identity/Assertion.ts"
import { type DependencyUnavailable, NotFound, type RateLimited } from "../../schemas/problems/HttpProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { fenced } from "../platform/database/FencedCommand.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { checking } from "./Assertions/CheckAssertion.ts"
import { loadNamed } from "./Assertions/LoadAssertion.ts"
import { type By, starting } from "./Assertions/StartAssertion.ts"
import type { RelyingParty } from "./Authenticators/Webauthn.ts"

export class Assertions extends Context.Service<Assertions, {
  readonly start: (
    by: By,
    asked: StartAssertion,
  ) => Effect.Effect<StartedAssertion, HTTPValidationError | RateLimited | DependencyUnavailable>
  /** Checks a proof. A proof that does not hold is an answer; an assertion of another issuer is NotFound. */
  readonly check: (
    by: By,
    id: AssertionId,
    proof: AssertionProof,
  ) => Effect.Effect<CheckedAssertion, NotFound | RateLimited | DependencyUnavailable>
}>()("bailiwick/services/people/Assertions") {
  static readonly layer = (party: RelyingParty) =>
    Layer.effect(
      Assertions,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const starts = yield* starting(party)
        const check = yield* checking

        return Assertions.of({
          start: Effect.fn("Assertions.start")(function* (by, asked) {
            const origins = yield* starts.originsOf(asked)
            yield* starts.admit(by, asked.subject)
            const turn = `assertions of ${by.issuer} ${asked.subject}`
            return yield* fenced(sql, { turn, admissions: [] }, starts.start(by, asked, origins)).pipe(
              Effect.catchTag("NotAdmitted", Effect.die),
            )
          }),
          check: Effect.fn("Assertions.check")(function* (by, id, proof) {
            const [named] = isUuid(id) ? yield* Effect.orDie(loadNamed(sql, id, by.issuer)) : []
            if (named === undefined) return yield* new NotFound()
            const turn = `assertions of ${Buffer.from(named.subject_key).toString("hex")}`
            return yield* fenced(sql, { turn, admissions: [] }, check(by, id, named, proof)).pipe(
              Effect.catchTag("NotAdmitted", Effect.die),
              Effect.tap(() => faultPoint("assertion.committed")),
            )
          }),
        })
      }),
    )
}
