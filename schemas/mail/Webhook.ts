/** Webhooks as the API shows them. */
import { Schema } from "effect"
import { WebhookId } from "../BrandedIds.ts"
import { complains, secretInput, valueError } from "../Validation/Fault.ts"
import { Timestamp } from "../Wire.ts"
import { EventType } from "./MailEvent.ts"

/**
 * `unused` before the first attempt, `healthy` while attempts succeed, `failing` since an attempt failed and none has
 * succeeded after it, `paused` while it is not active.
 */
export const WebhookHealth = Schema.Literals(["unused", "healthy", "failing", "paused"])
export type WebhookHealth = typeof WebhookHealth.Type

export const PausedBy = Schema.Literals(["owner", "operator", "system"]).annotate({ identifier: "PausedBy" })
export type PausedBy = typeof PausedBy.Type

export const WebhookView = Schema.Struct({
  id: WebhookId,
  url: Schema.String,
  description: Schema.NullOr(Schema.String),
  events: Schema.Array(EventType),
  is_active: Schema.Boolean,
  paused_at: Schema.NullOr(Timestamp).annotate({
    description: "Since when it is paused; null while it is active, or where an earlier release paused it",
  }),
  paused_by: Schema.NullOr(PausedBy).annotate({
    description:
      "`owner`: the account; `operator`: an operator, who alone can resume it; `system`: it failed for days; null as above",
  }),
  header_names: Schema.Array(Schema.String).annotate({
    description: "The names of the custom headers; no answer shows their values",
  }),
  basic_auth: Schema.Boolean.annotate({ description: "Whether its requests carry basic authentication" }),
  honor_retry_after: Schema.Boolean.annotate({
    description: "Whether a retry waits for as long as the receiver asks by `Retry-After`",
  }),
  rate_limit: Schema.NullOr(Schema.Int).annotate({
    description: "How many deliveries may begin in a second; null where there is no limit",
  }),
  health: WebhookHealth.annotate({
    description:
      "`failing`: an attempt failed, and none has succeeded in a later minute; `unused`: no attempt has ended yet",
  }),
  last_success_at: Schema.NullOr(Timestamp).annotate({
    description: "When the last attempt that succeeded began: the minute, some seconds late; null where none did",
  }),
  failing_since: Schema.NullOr(Timestamp).annotate({
    description: "The minute of the first failure after the last success; null where there is none",
  }),
  created_at: Timestamp,
}).annotate({ identifier: "Webhook" })
export type WebhookView = typeof WebhookView.Type

export const WebhookDetails = Schema.Struct({
  ...WebhookView.fields,
  updated_at: Timestamp,
  secret_made_at: Schema.NullOr(Timestamp).annotate({
    description: "When the secret that signs was made or brought; null where an earlier release made it",
  }),
  overlap_until: Schema.NullOr(Timestamp).annotate({
    description: "Until then the secret before the last rotation signs as well; null where one secret signs",
  }),
}).annotate({ identifier: "WebhookDetails" })
export type WebhookDetails = typeof WebhookDetails.Type

/** `whsec_` and the base64 of 24 to 64 bytes, as Standard Webhooks has it. */
const isSecret =
  /^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/][AQgw]==)?|(?:[A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$/

/** Random bytes have far more; a repeated character or word has fewer. */
const leastDistinctBytes = 12

const distinctBytes = (secret: string): number => new Set(atob(secret.slice("whsec_".length))).size

/** A secret that its owner brings, from where the endpoint was served before. */
export const BroughtSecret = Schema.String.check(
  Schema.makeFilter<string>((text) => isSecret.test(text), {
    expected: "a signing secret",
    toJsonSchema: () => [{ pattern: "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$" }, true],
    ...complains(valueError("Secret should be whsec_ and the base64 of 24 to 64 bytes.")),
  }),
  Schema.makeFilter<string>((text) => !isSecret.test(text) || distinctBytes(text) >= leastDistinctBytes, {
    expected: "random bytes",
    toJsonSchema: () => [{}, true],
    ...complains(valueError("Secret should be of random bytes.")),
  }),
).annotate({ ...secretInput, writeOnly: true })

/** The form that creation and rotation answer with: the only two moments at which the secret is shown. */
export const WebhookWithSecret = Schema.Struct({
  ...WebhookView.fields,
  secret: Schema.NullOr(Schema.String.check(Schema.isPattern(/^whsec_[A-Za-z0-9+/]{43}=$/u))).annotate({
    description:
      "Shown once: null where the request brought it, or repeats an earlier one of the same `Idempotency-Key`",
  }),
}).annotate({ identifier: "WebhookWithSecret" })
export type WebhookWithSecret = typeof WebhookWithSecret.Type
