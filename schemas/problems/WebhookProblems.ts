/** Failures of webhooks and their deliveries. */
import { Problem } from "./Problem.ts"

export class WebhookNotFound extends Problem<WebhookNotFound>()("WebhookNotFound", "not_found", 404, "Not found") {}

export class DeliveryNotFound extends Problem<DeliveryNotFound>()("DeliveryNotFound", "not_found", 404, "Not found") {}

export class WebhookLimit extends Problem<WebhookLimit>()(
  "WebhookLimit",
  "webhook_limit",
  409,
  "The account's number of webhooks is reached",
) {}

/** The account would resume a webhook that an operator paused. */
export class WebhookHeld extends Problem<WebhookHeld>()(
  "WebhookHeld",
  "paused_by_operator",
  409,
  "An operator paused the webhook",
) {}

/** A replay asked for a delivery that is still under way. */
export class DeliveryUnderWay
  extends Problem<DeliveryUnderWay>()("DeliveryUnderWay", "invalid_state", 409, "The delivery has not ended") {}

/** A command on the next attempt of a delivery that has none, or of which a process is making one. */
export class DeliveryNotWaiting extends Problem<DeliveryNotWaiting>()(
  "DeliveryNotWaiting",
  "invalid_state",
  409,
  "The delivery does not wait for an attempt",
) {}
