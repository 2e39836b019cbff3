/**
 * Links two identities of one person (docs/requests.md). The requester shows a fresh access token of the other
 * identity; its jti counts once. An operator approves, the other side is notified and may object: the link takes effect
 * at the later of the approval and 24 h after the notice. A leaked token alone takes nothing over.
 *
 * The commands of people need two round trips (FencedCommand.ts) or run in the caller's transaction. An approval and
 * the timer's settlement run in the caller's transaction.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type * as Wire from "../../schemas/identity/RequestBodies.ts"
import type { DependencyUnavailable, NotFound } from "../../schemas/problems/HttpProblems.ts"
import type * as Problems from "../../schemas/problems/IdentityProblems.ts"
import type { HTTPValidationError } from "../../schemas/Validation.ts"
import type { InTransaction, UnitOfWork } from "../platform/database/UnitOfWork.ts"
import type { Decision } from "../requests/PolicyReviews.ts"
import type { RequestRow } from "../requests/RequestRows.ts"
import { type Asking, asking } from "./Links/AskLink.ts"
import { type LinkPreview, previewingLink } from "./Links/LinkPreview.ts"
import { objecting, type Objection } from "./Links/Object.ts"
import { proving, type Shown } from "./Links/Prove.ts"
import { takingEffect } from "./Links/TakeEffect.ts"

export class Links extends Context.Service<Links, {
  /**
   * Verifies the token, for which its issuer may be asked for keys, and makes the proof. 422 where it is not a fresh
   * token of another identity that may be linked.
   */
  readonly prove: (asked: Shown) => Effect.Effect<
    Wire.LinkProof,
    HTTPValidationError | DependencyUnavailable | Problems.ProofConsumed | SqlError.SqlError,
    UnitOfWork
  >
  readonly request: (asked: Asking) => Effect.Effect<
    Wire.LinkRequest,
    | NotFound
    | HTTPValidationError
    | Problems.FourEyesCollapsed
    | Problems.ProofConsumed
    | Problems.ProofExpired
    | Problems.RequestExists
    | SqlError.SqlError,
    UnitOfWork
  >
  /** The request as the other side sees it on its page; null where there is none for this person. */
  readonly preview: (
    asked: Omit<Objection, "reason">,
  ) => Effect.Effect<LinkPreview | null, SqlError.SqlError>
  /** Records the objection of the other side. */
  readonly object: (asked: Objection) => Effect.Effect<
    Wire.LinkRequest,
    NotFound | Problems.RoleRequired | Problems.InvalidState | SqlError.SqlError,
    UnitOfWork
  >
  /** Carries out an operator's approval: sets the time at which the link takes effect. */
  readonly carryOut: (
    decision: Decision,
  ) => Effect.Effect<void, Problems.FourEyesCollapsed | SqlError.SqlError, InTransaction>
  /** Links the identities of a due request; called by its timer. */
  readonly settle: (request: RequestRow) => Effect.Effect<void, SqlError.SqlError, InTransaction>
}>()("bailiwick/services/links/Links") {
  static readonly layer = Layer.effect(
    Links,
    Effect.gen(function* () {
      return Links.of({
        prove: yield* proving,
        request: yield* asking,
        preview: yield* previewingLink,
        object: yield* objecting,
        ...(yield* takingEffect),
      })
    }),
  )
}
