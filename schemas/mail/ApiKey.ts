/** API keys as the API shows them. */
import { Schema } from "effect"
import { ApiKeyId } from "../BrandedIds.ts"
import { complains, valueError } from "../Validation/Fault.ts"
import { codePoints, storable } from "../Validation/Scalars.ts"
import { uuidParsing } from "../Validation/Uuid.ts"
import { Timestamp } from "../Wire.ts"

/** The permissions of a key. The set may grow; an existing key keeps its own. */
export const Permission = Schema.Literals(["send"]).annotate({ identifier: "ApiKeyPermission" })
export type Permission = typeof Permission.Type

/** 1 to 200 code points without control characters. */
export const ApiKeyName = Schema.String.check(
  codePoints(1, 200),
  Schema.isPattern(/^\P{Cc}*$/u, complains(valueError("leave out control characters, such as tabs and line breaks"))),
  storable,
)
  .annotate({ description: "1 to 200 characters, no control characters" })

/** `mail_k_` and 43 base62 digits: 256 random bits. */
export const ApiKeySecret = Schema.String.check(Schema.isPattern(/^mail_k_[0-9A-Za-z]{43}$/u))

/** A key's id in a path: a UUID of any version and variant, as pydantic accepts it. */
export const ApiKeyPathId = Schema.String.check(
  Schema.isGUID({
    toJsonSchema: () => ({ format: "uuid" }),
    ...complains((input) => uuidParsing(String(input))),
  }),
).pipe(Schema.brand("ApiKeyId"))

const shown = {
  id: ApiKeyId,
  name: Schema.String,
  key_prefix: Schema.String.check(Schema.isPattern(/^[0-9A-Za-z]{8}$/u)),
  permissions: Schema.Array(Permission),
  created_at: Timestamp,
}

/** The form of a list: never with the secret. */
export const ApiKeyView = Schema.Struct({
  ...shown,
  is_active: Schema.Boolean,
  last_used_at: Schema.NullOr(Timestamp),
}).annotate({ identifier: "ApiKey" })
export type ApiKeyView = typeof ApiKeyView.Type

/** The form that creation answers with: the only moment at which the secret is shown. */
export const CreatedApiKey = Schema.Struct({
  ...shown,
  key: Schema.NullOr(ApiKeySecret).annotate({
    description: "Null where the answer repeats an earlier one of the same `Idempotency-Key`: it is shown once",
  }),
}).annotate({ identifier: "CreatedApiKey" })
export type CreatedApiKey = typeof CreatedApiKey.Type
