/** The query of a list of the identity API. */
import { Effect, Schema } from "effect"

/** A decimal integer from 1 to 100 without leading zeros. */
const Limit = Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/u))

/** A `Limit` with this default. */
export const limitOr = (otherwise: number) =>
  Limit.annotate({ default: String(otherwise) }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(String(otherwise))),
  )

/** The `Limit` of a list that is answered whole where no page is asked for. */
export const limitOfPage = Schema.optionalKey(Limit)

/** The limit of a page; 100 where the request has only a cursor. */
export const pageLimit = (limit: string | undefined): number => Number(limit ?? 100)
