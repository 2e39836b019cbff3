/** Why a server of ours could not be started; `message` is meant for the person at the terminal. */
import { Schema } from "effect"

export class EmbeddedError extends Schema.TaggedError<EmbeddedError>()("EmbeddedError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect()),
}) {}

/** Runs what may throw (file system, processes) and says what was being done when it did. */
export const attempting = (what: string) => (cause: unknown) =>
  new EmbeddedError({ message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}`, cause })
