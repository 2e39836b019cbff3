/** The behaviour of the `Webhook` entity: each command is one call of the service, in its caller's name. */
import { Effect } from "effect"
import { Entity } from "effect/cluster"
import { WebhookActor } from "../../schemas/actors/Webhook.ts"
import { CurrentRequest } from "../../services/platform/CurrentRequest.ts"
import { Webhooks } from "../../services/webhooks/Webhooks.ts"

export const webhookActor = WebhookActor.toLayer(
  Effect.gen(function* () {
    const webhooks = yield* Webhooks
    const { entityId } = yield* Entity.CurrentAddress
    return WebhookActor.of({
      Update: ({ payload: { accountId, origin, ...change } }) =>
        webhooks.update(accountId, entityId, change).pipe(Effect.provideService(CurrentRequest, origin)),
      Remove: ({ payload: { accountId, origin } }) =>
        webhooks.remove(accountId, entityId).pipe(Effect.provideService(CurrentRequest, origin)),
      Rotate: ({ payload: { accountId, origin, overlapSeconds } }) =>
        webhooks.rotate(accountId, entityId, overlapSeconds).pipe(Effect.provideService(CurrentRequest, origin)),
    })
  }),
  { maxIdleTime: "1 minute", concurrency: 1, mailboxCapacity: 64 },
)
