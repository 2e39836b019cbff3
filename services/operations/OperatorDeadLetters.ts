/** Dead letters of all accounts, for operators: pages of them, how many a replay would send, and the replay. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { DeliveryId, PersonId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { DeadLetterPage, LettersReplayed, SpanReplayed } from "../../schemas/identity/DeadLetterView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import type { LetterFilter } from "../webhooks/DeadLetterPages.ts"
import { DeadLetters, type LetterSpan } from "../webhooks/DeadLetters.ts"
import type { AskedPage } from "./OperatorAudit.ts"
import { mustOperate } from "./OperatorRole.ts"

type Refused = NotFound | RoleRequired | SqlError.SqlError

interface Replay {
  readonly personId: PersonId
  readonly reason: string
}

export class OperatorDeadLetters extends Context.Service<OperatorDeadLetters, {
  readonly list: (
    personId: PersonId,
    filter: LetterFilter,
    page: AskedPage,
  ) => Effect.Effect<DeadLetterPage, RoleRequired | SqlError.SqlError>
  /** How many dead letters `replaySpan` would send again now. NotFound where there is no such webhook any more. */
  readonly count: (
    personId: PersonId,
    webhookId: WebhookId,
    span: LetterSpan,
  ) => Effect.Effect<LettersReplayed, Refused>
  /** Starts the replay of a webhook's dead letters of a span, in the caller's transaction. */
  readonly replaySpan: (
    asked: Replay & { readonly webhookId: WebhookId; readonly span: LetterSpan },
  ) => Effect.Effect<SpanReplayed, Refused>
  /** Sends one dead letter again; InvalidState where its webhook was deleted. */
  readonly replayOne: (
    asked: Replay & { readonly deliveryId: DeliveryId },
  ) => Effect.Effect<LettersReplayed, InvalidState | Refused>
}>()("bailiwick/services/operations/OperatorDeadLetters") {
  static readonly layer = Layer.effect(
    OperatorDeadLetters,
    Effect.gen(function* () {
      const operating = yield* mustOperate
      const letters = yield* DeadLetters

      const by = ({ personId, reason }: Replay) => ({ actor: `person:${personId}`, details: { reason } })

      const list: OperatorDeadLetters["Service"]["list"] = Effect.fn("OperatorDeadLetters.list")(
        function* (personId, filter, { afterId, limit }) {
          yield* operating(personId)
          const page = yield* letters.list(filter, limit, afterId)
          const items = page.letters.map(({ created_at, died_at, ...letter }) => ({
            ...letter,
            created_at: created_at.toISOString(),
            died_at: died_at.toISOString(),
          }))
          return { items, next_after_id: page.nextAfterId }
        },
      )

      const count: OperatorDeadLetters["Service"]["count"] = Effect.fn("OperatorDeadLetters.count")(
        function* (personId, webhookId, span) {
          yield* operating(personId)
          const deliveries = isUuid(webhookId) ? yield* letters.count(webhookId, span) : "gone"
          return deliveries === "gone" ? yield* new NotFound() : { deliveries }
        },
      )

      const replaySpan: OperatorDeadLetters["Service"]["replaySpan"] = Effect.fn("OperatorDeadLetters.replaySpan")(
        function* ({ span, webhookId, ...asked }) {
          yield* operating(asked.personId, "share")
          const started = isUuid(webhookId) ? yield* letters.replaySpan(webhookId, span, by(asked)) : "gone"
          return started === "gone" ? yield* new NotFound() : started
        },
      )

      const replayOne: OperatorDeadLetters["Service"]["replayOne"] = Effect.fn("OperatorDeadLetters.replayOne")(
        function* ({ deliveryId, ...asked }) {
          yield* operating(asked.personId, "share")
          const outcome = isUuid(deliveryId) ? yield* letters.replayOne(deliveryId, by(asked)) : "unknown"
          if (outcome === "unknown") return yield* new NotFound()
          if (outcome === "gone") {
            const detail = "Its webhook was deleted."
            return yield* new InvalidState({ detail, state: "deleted", allowed: ["active", "paused"] })
          }
          return { deliveries: 1 }
        },
      )

      return OperatorDeadLetters.of({ list, count, replaySpan, replayOne })
    }),
  )
}
