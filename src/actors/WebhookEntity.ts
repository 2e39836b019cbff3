/** The handlers of the `Webhook` entity: each command is one service call with its request's origin. */
import { Effect } from "effect"
import { Entity } from "effect/cluster"
import { WebhookActor } from "../../schemas/actors/WebhookActor.ts"
import { Webhooks } from "../../services/webhooks/Webhooks.ts"
import { asked } from "./Asked.ts"

export const webhookActor = WebhookActor.toLayer(
  Effect.gen(function* () {
    const webhooks = yield* Webhooks
    const { entityId } = yield* Entity.CurrentAddress
    return WebhookActor.of({
      Update: asked(({ accountId, ...change }) => webhooks.update(accountId, entityId, change)),
    })
  }),
  { maxIdleTime: "1 minute", concurrency: 1, mailboxCapacity: 64 },
)
