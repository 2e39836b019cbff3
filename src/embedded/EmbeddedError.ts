/** An embedded server could not be started; `message` is meant for the person at the terminal. */
import { Schema } from "effect"

export class EmbeddedError extends Schema.TaggedError<EmbeddedError>()("EmbeddedError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect()),
}) {}

/** Makes an EmbeddedError of a thrown cause (file system, processes); `what` says what was being done. */
export const attempting = (what: string) => (cause: unknown) =>
  new EmbeddedError({ message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}`, cause })
