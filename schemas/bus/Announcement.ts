import { Schema } from "effect"
import { AccountUuid, DeliveryUuid, WebhookUuid } from "../BrandedIds.ts"

/** A message on `webhooks.v1.retry.<webhook_id>`: deliveries that may be due. The rows are the truth. */
export const Announcement = Schema.Struct({
  webhook_id: WebhookUuid,
  account_id: AccountUuid,
  delivery_ids: Schema.Array(DeliveryUuid).check(Schema.isMaxLength(100)),
})
