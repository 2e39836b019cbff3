/** Failures of notifications. */
import { Schema } from "effect"
import { Problem } from "./Problem.ts"

export class NotificationNotFound
  extends Problem<NotificationNotFound>()("NotificationNotFound", "not_found", 404, "Not found") {}

export class PreferencesInvalid extends Problem<PreferencesInvalid>()(
  "PreferencesInvalid",
  "preferences_invalid",
  400,
  "preferences is not an object",
) {}

/** The account's number of live streams in this process is reached. */
export class StreamLimit extends Problem<StreamLimit>()("StreamLimit", "rate_limited", 429, "Too many live streams", {
  retry_after: Schema.Int,
}) {}
