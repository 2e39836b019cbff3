/**
 * The faults of a request's values, in the words of pydantic 2 (https://docs.pydantic.dev/errors).
 *
 * A complaint is a fault without its location: a type, a message and its numbers. Our schemas may carry a complaint of
 * their own under `complains`; Effect's own checks are recognised by their representation (Complaints.ts).
 */

export interface Complaint {
  readonly type: string
  readonly msg: string
  readonly ctx?: Readonly<Record<string, unknown>>
}

export interface Fault extends Complaint {
  /** `body`, `query`, `path` or `header`, then fields and list indexes. */
  readonly loc: ReadonlyArray<string | number>
  readonly input?: unknown
}

const complaintKey = "bailiwick/complaint"
const secretKey = "bailiwick/secret"

/** An annotation for a schema, a check or an issue: the complaint for a value that it refuses. */
export const complains = (complaint: Complaint | ((input: unknown) => Complaint)) => ({ [complaintKey]: complaint })

/** An annotation for a schema whose refused values are never repeated in an answer. */
export const secretInput = { [secretKey]: true }

type Annotations = { readonly [key: string]: unknown } | undefined

export const complaintIn = (annotations: Annotations, input: unknown): Complaint | undefined => {
  const found = annotations?.[complaintKey] as Complaint | ((input: unknown) => Complaint) | undefined
  return typeof found === "function" ? found(input) : found
}

export const isSecret = (annotations: Annotations): boolean => annotations?.[secretKey] === true

/** A rule of ours that pydantic has no type for; FastAPI writes the raised error as an empty object. */
export const valueError = (message: string): Complaint => ({
  type: "value_error",
  msg: `Value error, ${message}`,
  ctx: { error: {} },
})

export const missing: Complaint = { type: "missing", msg: "Field required" }

const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`

export const stringTooShort = (min: number): Complaint => ({
  type: "string_too_short",
  msg: `String should have at least ${count(min, "character")}`,
  ctx: { min_length: min },
})

export const stringTooLong = (max: number): Complaint => ({
  type: "string_too_long",
  msg: `String should have at most ${count(max, "character")}`,
  ctx: { max_length: max },
})

export const listTooShort = (min: number, actual: number): Complaint => ({
  type: "too_short",
  msg: `List should have at least ${count(min, "item")} after validation, not ${actual}`,
  ctx: { field_type: "List", min_length: min, actual_length: actual },
})

export const listTooLong = (max: number, actual: number): Complaint => ({
  type: "too_long",
  msg: `List should have at most ${count(max, "item")} after validation, not ${actual}`,
  ctx: { field_type: "List", max_length: max, actual_length: actual },
})

export const mapTooLong = (max: number, actual: number): Complaint => ({
  type: "too_long",
  msg: `Dictionary should have at most ${count(max, "item")} after validation, not ${actual}`,
  ctx: { field_type: "Dictionary", max_length: max, actual_length: actual },
})

export const patternMismatch = (pattern: string): Complaint => ({
  type: "string_pattern_mismatch",
  msg: `String should match pattern '${pattern}'`,
  ctx: { pattern },
})

export const atLeast = (ge: number): Complaint => ({
  type: "greater_than_equal",
  msg: `Input should be greater than or equal to ${ge}`,
  ctx: { ge },
})

export const atMost = (le: number): Complaint => ({
  type: "less_than_equal",
  msg: `Input should be less than or equal to ${le}`,
  ctx: { le },
})

const python = (value: unknown): string =>
  typeof value === "string"
    ? `'${value}'`
    : value === true
    ? "True"
    : value === false
    ? "False"
    : value === null
    ? "None"
    : String(value)

/** `Input should be 'a', 'b' or 'c'`. */
export const notOneOf = (literals: ReadonlyArray<unknown>): Complaint => {
  const names = literals.map(python)
  const expected = names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`
  return { type: "literal_error", msg: `Input should be ${expected}`, ctx: { expected } }
}

export const intType: Complaint = { type: "int_type", msg: "Input should be a valid integer" }
export const intParsing: Complaint = {
  type: "int_parsing",
  msg: "Input should be a valid integer, unable to parse string as an integer",
}
export const intParsingSize: Complaint = {
  type: "int_parsing_size",
  msg: "Unable to parse input string as an integer, exceeded maximum size",
}
export const intFromFloat: Complaint = {
  type: "int_from_float",
  msg: "Input should be a valid integer, got a number with a fractional part",
}
export const notFinite: Complaint = { type: "finite_number", msg: "Input should be a finite number" }
export const boolType: Complaint = { type: "bool_type", msg: "Input should be a valid boolean" }
export const boolParsing: Complaint = {
  type: "bool_parsing",
  msg: "Input should be a valid boolean, unable to interpret input",
}
