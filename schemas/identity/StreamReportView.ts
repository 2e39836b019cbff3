/** The broker's streams and their consumers, for operators (docs/api/identity.md). */
import { Schema } from "effect"
import { Timestamp } from "../Wire.ts"

export const BusReport = Schema.Struct({
  as_of: Timestamp,
  /** Null where the broker does not answer. */
  items: Schema.NullOr(Schema.Array(Schema.Struct({
    stream: Schema.String,
    messages: Schema.Int,
    bytes: Schema.Int,
    first_seq: Schema.Int,
    last_seq: Schema.Int,
    /** When the oldest and the newest message were stored; null in an empty stream. */
    first_at: Schema.NullOr(Timestamp),
    last_at: Schema.NullOr(Timestamp),
    /** Null where the broker does not list them to this program's user. */
    consumers: Schema.NullOr(Schema.Array(Schema.Struct({
      name: Schema.String,
      /** Messages that the consumer has yet to get. */
      pending: Schema.Int,
      /** Messages that it got and has not acknowledged. */
      ack_pending: Schema.Int,
      /** Those of them that it got more than once. */
      redelivered: Schema.Int,
      /** When the oldest message was stored that it has not acknowledged; null where there is none, or it is not known. */
      behind_since: Schema.NullOr(Timestamp),
    }))),
  }))),
}).annotate({ identifier: "BusReport" })
export type BusReport = typeof BusReport.Type
