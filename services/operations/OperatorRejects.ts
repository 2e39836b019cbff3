/** Messages that could not be taken in, for operators: what was wrong, once more, and the end of one. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { IntakeReject, IntakeRejectPage } from "../../schemas/identity/IntakeRejectView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { type RejectRow, RejectUpkeep, retryable } from "../platform/messaging/RejectUpkeep.ts"
import { Audit } from "../platform/observability/Audit.ts"
import type { AskedPage } from "./OperatorAudit.ts"
import { mustOperate } from "./OperatorRole.ts"

interface Asked {
  readonly personId: PersonId
  readonly rejectId: string
  readonly reason: string
}

type Decided = Effect.Effect<IntakeReject, InvalidState | NotFound | RoleRequired | SqlError.SqlError>

// Not fatal: the first bytes may end within a character. A BOM is shown, too.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** A message as operators see it. */
export const intakeReject = ({ expires_at, raw, received_at, ...row }: RejectRow): IntakeReject => ({
  ...row,
  raw: decoder.decode(raw),
  received_at: received_at.toISOString(),
  waits_until: expires_at?.toISOString() ?? null,
  retryable: retryable(row),
})

export class OperatorRejects extends Context.Service<OperatorRejects, {
  /** Newest first: rejected ones, or those that wait for their account; of another state there is none. */
  readonly list: (
    personId: PersonId,
    state: string,
    page: AskedPage,
  ) => Effect.Effect<IntakeRejectPage, RoleRequired | SqlError.SqlError>
  /** Lets one wait for its account once more; InvalidState where it never did. In the caller's transaction. */
  readonly retry: (asked: Asked) => Decided
  /** Ends one; InvalidState where it has ended. In the caller's transaction. */
  readonly discard: (asked: Asked) => Decided
}>()("bailiwick/services/operations/OperatorRejects") {
  static readonly layer = Layer.effect(
    OperatorRejects,
    Effect.gen(function* () {
      const operating = yield* mustOperate
      const audit = yield* Audit
      const upkeep = yield* RejectUpkeep

      const list: OperatorRejects["Service"]["list"] = Effect.fn("OperatorRejects.list")(
        function* (personId, state, { afterId, limit }) {
          yield* operating(personId)
          if (state !== "rejected" && state !== "waiting") return { items: [], next_after_id: null }
          const { nextAfterId, rejects } = yield* upkeep.list(state, limit, afterId)
          return { items: rejects.map(intakeReject), next_after_id: nextAfterId }
        },
      )

      const decided = Effect.fnUntraced(function* (
        { personId, reason, rejectId }: Asked,
        what: "retried" | "discarded",
        possible: (row: RejectRow) => boolean,
        allowed: ReadonlyArray<string>,
      ) {
        yield* operating(personId, "share")
        const row = isUuid(rejectId) ? yield* upkeep.lock(rejectId) : null
        if (row === null) return yield* new NotFound()
        if (!possible(row)) {
          const detail = what === "retried"
            ? "Only a rejected message that waited for its account can wait once more: publish it again instead."
            : "It was taken in or discarded."
          return yield* new InvalidState({ detail, state: row.state, allowed })
        }
        const changed = yield* (what === "retried" ? upkeep.retry(row.id) : upkeep.discard(row.id))
        yield* audit.append({
          action: `intake-reject.${what}`,
          actor: `person:${personId}`,
          subject: `intake-reject:${row.id}`,
          outcome: "done",
          details: { reason, stream: row.stream, stream_seq: row.stream_seq },
        })
        return intakeReject(changed)
      })

      return OperatorRejects.of({
        list,
        retry: Effect.fn("OperatorRejects.retry")((asked) => decided(asked, "retried", retryable, ["rejected"])),
        discard: Effect.fn("OperatorRejects.discard")((asked) =>
          decided(asked, "discarded", ({ state }) => state !== "resolved", ["rejected", "waiting"])
        ),
      })
    }),
  )
}
