import { Schema } from "effect"
import { Uuid } from "../Wire.ts"

/** On `webhooks.v1.retry.<webhook_id>`: where due deliveries are to be looked for. The rows are the truth. */
export const Announcement = Schema.Struct({
  webhook_id: Uuid,
  account_id: Uuid,
  delivery_ids: Schema.Array(Uuid).check(Schema.isMaxLength(100)),
})
