import { Schema } from "effect"

/**
 * A message that the broker did not take. `subject`, `size` and `headers` are faults of the message, which will never
 * pass; the others may pass later. `refused` is the stream's own answer (full, or a stale expectation).
 */
export class BusError extends Schema.TaggedError<BusError>()("BusError", {
  reason: Schema.Literals(["subject", "size", "headers", "unavailable", "no-stream", "timeout", "refused"]),
  detail: Schema.String,
}) {
  /** Whether the same message may pass later. */
  get retryable(): boolean {
    return this.reason !== "subject" && this.reason !== "size" && this.reason !== "headers"
  }

  override get message(): string {
    return `${this.reason}: ${this.detail}`
  }
}
