/** Webhooks of all accounts, for operators: paused, resumed, and made to try what waits at once. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { KickedDeliveries, OperatedWebhook } from "../../schemas/identity/QueueView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { InvalidState, type RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import type { InTransaction } from "../platform/database/UnitOfWork.ts"
import type { Acting } from "../webhooks/DeadLetters.ts"
import { type OperatedWebhook as Row, WebhookHolds } from "../webhooks/WebhookHolds.ts"
import { mustOperate } from "./OperatorRole.ts"

interface Asked {
  readonly personId: PersonId
  readonly webhookId: WebhookId
  readonly reason: string
}

type Decided<A> = Effect.Effect<A, InvalidState | NotFound | RoleRequired | SqlError.SqlError, InTransaction>

export const operatedWebhook = ({ paused_at, ...row }: Row): OperatedWebhook => ({
  ...row,
  paused_at: paused_at?.toISOString() ?? null,
})

export class OperatorWebhooks extends Context.Service<OperatorWebhooks, {
  readonly pause: (asked: Asked) => Decided<OperatedWebhook>
  readonly resume: (asked: Asked) => Decided<OperatedWebhook>
  readonly kick: (asked: Asked) => Decided<KickedDeliveries>
}>()("bailiwick/services/operations/OperatorWebhooks") {
  static readonly layer = Layer.effect(
    OperatorWebhooks,
    Effect.gen(function* () {
      const operating = yield* mustOperate
      const holds = yield* WebhookHolds

      const decided = Effect.fnUntraced(function* <A extends object>(
        { personId, reason, webhookId }: Asked,
        allowed: ReadonlyArray<string>,
        command: (id: WebhookId, by: Acting) => Effect.Effect<A | string | null, SqlError.SqlError, InTransaction>,
      ): Effect.fn.Return<A, InvalidState | NotFound | RoleRequired | SqlError.SqlError, InTransaction> {
        yield* operating(personId, "share")
        const by = { actor: `person:${personId}`, details: { reason } }
        const done = isUuid(webhookId) ? yield* command(webhookId, by) : null
        if (done === null) return yield* new NotFound()
        if (typeof done === "string") return yield* new InvalidState({ state: done, allowed })
        return done
      })

      return OperatorWebhooks.of({
        pause: Effect.fn("OperatorWebhooks.pause")((asked) =>
          Effect.map(decided(asked, ["active", "paused_by_owner", "paused_by_system"], holds.pause), operatedWebhook)
        ),
        resume: Effect.fn("OperatorWebhooks.resume")((asked) =>
          Effect.map(decided(asked, ["paused_by_operator", "paused_by_system"], holds.resume), operatedWebhook)
        ),
        kick: Effect.fn("OperatorWebhooks.kick")((asked) => decided(asked, ["active"], holds.kick)),
      })
    }),
  )
}
