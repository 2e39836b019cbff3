/** People whom identity providers hold, as operators see and release them (docs/signals.md). */
import { Schema } from "effect"
import { PersonId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { PersonStatus } from "./IdentityDirectory.ts"
import { limitOr } from "./ListPage.ts"

/** One hold: a person may have one of each provider. */
export const PersonHold = Schema.Struct({
  person_id: PersonId,
  /** The issuer of the provider. */
  transmitter: Schema.String,
  /** The word of the provider that holds the person: `account-disabled` or `account-purged`, which no event ends. */
  kind: Schema.Literals(["disabled", "purged"]),
  /** The time of which that word tells, by the provider. */
  told_at: Timestamp,
  since: Timestamp,
}).annotate({ identifier: "PersonHold" })

/** A cursor in the list of holds: `since` in milliseconds, `person_id` and `transmitter`, with a space between. */
export const HoldCursor = Schema.String.check(
  Schema.isPattern(/^[0-9]{1,14} [A-Za-z0-9_-]{1,128} [^\p{Cc}]{1,900}$/u),
).annotate({ identifier: "HoldCursor" })

/** Those held last first. */
export const PersonHolds = Schema.Struct({
  items: Schema.Array(PersonHold),
  next_after_id: Schema.NullOr(Schema.String),
}).annotate({ identifier: "PersonHolds" })
export type PersonHolds = typeof PersonHolds.Type

export const personHoldQuery = { limit: limitOr(50), after_id: Schema.optionalKey(HoldCursor) }

export const ReleasedPerson = Schema.Struct({
  person_id: PersonId,
  /** The number of holds that ended. */
  holds: Schema.Int,
  /** What the directory says of the person, which counts from now on. */
  status: PersonStatus,
}).annotate({ identifier: "ReleasedPerson" })
export type ReleasedPerson = typeof ReleasedPerson.Type
