/** A poll for security event tokens and its answer (RFC 8936, 2.2 to 2.6). Unknown members are ignored. */
import { Schema } from "effect"
import { Text } from "../Validation/Scalars.ts"

const Refused = Schema.Struct({ err: Text(0, 1_000), description: Schema.optionalKey(Text(0, 10_000)) })

export const StreamPolling = Schema.Struct({
  /** The most events in the answer; 0: only acknowledge. A thousand, where it is left out or higher. */
  maxEvents: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
  /** False: without an event, wait for one for up to 30 seconds. */
  returnImmediately: Schema.optionalKey(Schema.Boolean),
  /** Ids (`jti`) of events that were taken; they are not sent again. */
  ack: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isMaxLength(10_000))),
  /**
   * Events that could not be taken, by id. They are not sent again, except where the key is unknown to the receiver:
   * that stops the stream.
   */
  setErrs: Schema.optionalKey(Schema.Record(Schema.String, Refused).check(Schema.isMaxProperties(1_000))),
}).annotate({ identifier: "StreamPolling" })
export type StreamPolling = typeof StreamPolling.Type

export const StreamSets = Schema.Struct({
  /** Security event tokens (compact JWS) by id. */
  sets: Schema.Record(Schema.String, Schema.String),
  moreAvailable: Schema.Boolean,
}).annotate({ identifier: "StreamSets" })
