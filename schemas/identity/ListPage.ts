/** The query of a list of the identity API. */
import { Effect, Schema } from "effect"

/** A decimal integer from 1 to 100 without leading zeros; this one by default. */
export const limitOr = (otherwise: number) =>
  Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u)).annotate({ default: String(otherwise) }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(String(otherwise))),
  )
