/** The live tail of the bus, for operators (docs/api/identity.md). */
import { Schema } from "effect"
import { followedBy, isPattern } from "../bus/SubjectPattern.ts"
import { complains, valueError } from "../Validation/Fault.ts"
import { Text } from "../Validation/Scalars.ts"
import { Timestamp } from "../Wire.ts"

/** Data of an event `messages`. */
export const PassedMessages = Schema.Struct({
  /** Oldest first. */
  items: Schema.Array(Schema.Struct({
    at: Timestamp,
    stream: Schema.String,
    /** The message's number in its stream. */
    seq: Schema.Int,
    subject: Schema.String,
    bytes: Schema.Int,
    /** The first 2,000 characters; null of streams that tell who a person is or what mail says. */
    payload: Schema.NullOr(Schema.String),
    /** The payload is longer. */
    cut: Schema.Boolean,
  })),
  /** More passed than the stream shows: 50 messages of each of the broker's streams a second. */
  skipped: Schema.Boolean,
  /** Whether the broker answered. */
  reached: Schema.Boolean,
}).annotate({ identifier: "PassedMessages" })
export type PassedMessages = typeof PassedMessages.Type

/** Dot-separated tokens of `A-Za-z0-9_-`, `*` for one token, `>` at the end for one or more, that some stream takes. */
const SubjectPattern = Text(1, 1024).check(
  Schema.makeFilter<string>((text) => isPattern(text) && followedBy(text).length > 0, {
    expected: "subjects of the bus",
    toJsonSchema: () => [{}, true],
    ...complains(valueError("no stream of the bus takes this subject")),
  }),
)

export const busTailQuery = { subject: Schema.optionalKey(SubjectPattern) }
