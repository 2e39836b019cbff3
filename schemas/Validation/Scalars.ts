/**
 * Scalars that read what pydantic 2 reads in its lax mode, and write one canonical form.
 *
 * Query values arrive as strings; in a JSON body a string may stand for a number or a boolean too. Each scalar carries
 * its description for the OpenAPI document under `x-wire`, since it accepts more than the document advertises.
 */
import { Effect, Schema, SchemaIssue, SchemaTransformation } from "effect"
import {
  boolParsing,
  boolType,
  complains,
  type Complaint,
  intFromFloat,
  intParsing,
  intParsingSize,
  intType,
  patternMismatch,
} from "./Fault.ts"
import { readUuid, uuidParsing } from "./Uuid.ts"

const refuse = (complaint: Complaint, input: unknown, options: { readonly reportInput?: boolean | undefined }) =>
  Effect.fail(new SchemaIssue.InvalidValue(complains(complaint), input, options))

const reading = <A, E>(read: (input: unknown) => { readonly value: A } | Complaint, write: (value: A) => E) =>
  SchemaTransformation.transformEffect<A, E>({
    decode: (input, options) => {
      const result = read(input)
      return "value" in result ? Effect.succeed(result.value) : refuse(result, input, options)
    },
    encode: (value) => Effect.succeed(write(value)),
  })

const digits = /^[+-]?[0-9]+(?:_[0-9]+)*(?:\.0+)?$/

/** CPython's limit, which pydantic uses for integers longer than 64 bits. */
const maxDigits = 4_300

/**
 * Pydantic's integers have no largest one. An integer beyond what a double represents exactly is read as the largest
 * exact one, which every bound treats alike.
 */
const safe = (value: number) => ({
  value: Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, value)) + 0,
})

const readInt = (input: unknown): { readonly value: number } | Complaint => {
  if (typeof input === "boolean") return { value: Number(input) }
  if (typeof input === "number") return Number.isInteger(input) ? safe(input) : intFromFloat
  if (typeof input !== "string") return intType
  const text = input.trim()
  if (!digits.test(text)) return intParsing
  return text.length > maxDigits ? intParsingSize : safe(Number(text.replaceAll("_", "")))
}

const yes = new Set(["1", "on", "t", "true", "y", "yes"])
const no = new Set(["0", "off", "f", "false", "n", "no"])

const readBoolean = (input: unknown): { readonly value: boolean } | Complaint => {
  if (typeof input === "boolean") return { value: input }
  if (input === 1 || input === 0) return { value: input === 1 }
  if (typeof input === "number") return Number.isInteger(input) && Math.abs(input) < 2 ** 63 ? boolParsing : boolType
  if (typeof input !== "string") return boolType
  const text = input.toLowerCase()
  return yes.has(text) ? { value: true } : no.has(text) ? { value: false } : boolParsing
}

export interface Bounds {
  readonly min?: number
  readonly max?: number
}

const integer = ({ min, max }: Bounds) => {
  let schema = Schema.Int
  if (min !== undefined) schema = schema.check(Schema.isGreaterThanOrEqualTo(min))
  if (max !== undefined) schema = schema.check(Schema.isLessThanOrEqualTo(max))
  return schema
}

const advertisedInt = ({ min, max }: Bounds, otherwise?: number) => ({
  "x-wire": {
    type: "integer",
    description: "Also as a string: `10`, `+10`, `1_000`, `10.0`.",
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
    ...(otherwise === undefined ? {} : { default: otherwise }),
  },
})

const queryInt = (bounds: Bounds, otherwise?: number) =>
  Schema.String.annotate(advertisedInt(bounds, otherwise)).pipe(
    Schema.decodeTo(integer(bounds), reading<number, string>(readInt, String)),
  )

/** An integer in a query: `10`, `+10`, ` 10 `, `1_000`, `10.0`. `advertised` is the default that the endpoint applies. */
export const QueryInt = (bounds: Bounds = {}, advertised?: number) => queryInt(bounds, advertised)

/** An optional integer in a query, with this default. */
export const QueryIntOr = (bounds: Bounds, otherwise: number) =>
  queryInt(bounds, otherwise).pipe(Schema.withDecodingDefaultKey(Effect.succeed(String(otherwise))))

const advertisedBoolean = {
  type: "boolean",
  description: "Also `t`, `yes`, `y`, `on`, `1` and their opposites.",
}

const queryBoolean = (advertised: { readonly default?: boolean }) =>
  Schema.String.annotate({ "x-wire": { ...advertisedBoolean, ...advertised } }).pipe(
    Schema.decodeTo(Schema.Boolean, reading<boolean, string>(readBoolean, String)),
  )

/** A boolean in a query: true, t, yes, y, on, 1 and their opposites, in any case. */
export const QueryBoolean = queryBoolean({})

/** An optional boolean in a query, with this default. */
export const QueryBooleanOr = (otherwise: boolean) =>
  queryBoolean({ default: otherwise }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(String(otherwise))))

/** Any text in a query; one that is not among `known` finds no row. Only the known ones are advertised. */
export const QueryOneOf = (known: ReadonlyArray<string>, otherwise?: string) =>
  Schema.String.annotate({
    "x-wire": { type: "string", enum: known, ...(otherwise === undefined ? {} : { default: otherwise }) },
  })

const readUuidText = (input: unknown): { readonly value: string } | Complaint => {
  const value = readUuid(String(input))
  return value === undefined ? uuidParsing(String(input)) : { value }
}

/** A UUID in a query: with hyphens, of digits only, in braces, or as a URN. */
export const QueryUuid = Schema.String.annotate({ "x-wire": { type: "string", format: "uuid" } }).pipe(
  Schema.decodeTo(Schema.String, reading<string, string>(readUuidText, (value) => value)),
)

/** The JSON values that may stand for a number or a boolean. */
const scalar = Schema.Union([Schema.Finite, Schema.String, Schema.Boolean])

type JsonScalar = typeof scalar.Type

const bodyInt = (bounds: Bounds, otherwise?: number) =>
  scalar.annotate({ ...advertisedInt(bounds, otherwise), ...complains(intType) }).pipe(
    Schema.decodeTo(integer(bounds), reading<number, JsonScalar>(readInt, (value) => value)),
  )

/** An integer in a JSON body: a number without a fraction, or a string that reads as one. */
export const BodyInt = (bounds: Bounds = {}) => bodyInt(bounds)

/** An optional integer in a JSON body, with this default. */
export const BodyIntOr = (bounds: Bounds, otherwise: number) =>
  bodyInt(bounds, otherwise).pipe(Schema.withDecodingDefaultKey(Effect.succeed(otherwise)))

const bodyBoolean = (advertised: { readonly default?: boolean }) =>
  scalar.annotate({ "x-wire": { ...advertisedBoolean, ...advertised }, ...complains(boolType) }).pipe(
    Schema.decodeTo(Schema.Boolean, reading<boolean, JsonScalar>(readBoolean, (value) => value)),
  )

/** A boolean in a JSON body: true, false, and the values that pydantic reads as them. */
export const BodyBoolean = bodyBoolean({})

/** An optional boolean in a JSON body, with this default. */
export const BodyBooleanOr = (otherwise: boolean) =>
  bodyBoolean({ default: otherwise }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(otherwise)))

/** At least `min` code points. */
export const minCodePoints = (min: number) => Schema.isMinCodePoints(min)

/** At most `max` code points. */
export const maxCodePoints = (max: number) => Schema.isMaxCodePoints(max)

/** Between `min` and `max` code points, both included. */
export const codePoints = (min: number, max: number) =>
  Schema.isBetweenCodePoints(min, max, { toJsonSchema: () => ({ minLength: min, maxLength: max }) })

const notUnicode: Complaint = {
  type: "string_unicode",
  msg: "Input should be a valid string, unable to parse raw data as a unicode string",
}

/** The fault of text that PostgreSQL cannot store: U+0000, or half of a surrogate pair. */
export const unstorable = (text: string): Complaint | undefined =>
  text.includes("\u0000") ? patternMismatch("^[^\\x00]*$") : text.isWellFormed() ? undefined : notUnicode

/** Text that PostgreSQL can store. */
export const storable = Schema.makeFilter<string>((text) => unstorable(text) === undefined, {
  expected: "text without U+0000",
  toJsonSchema: () => [{}, true],
  ...complains((input) => (typeof input === "string" ? unstorable(input) : undefined) ?? notUnicode),
})

/** Free text of `min` to `max` code points that PostgreSQL can store. */
export const Text = (min: number, max: number) => Schema.String.check(codePoints(min, max), storable)

const filterKey = "bailiwick/listFilter"

/**
 * A list's filter: any text, of which those of `known` are advertised. Request validation even accepts U+0000 in it, as
 * a text that no row has, since a filter that no row meets gives an empty list and no fault.
 */
export const ListFilter = (known: ReadonlyArray<string>) => QueryOneOf(known).annotate({ [filterKey]: true })

export const isListFilter = (annotations: { readonly [key: string]: unknown } | undefined): boolean =>
  annotations?.[filterKey] === true
