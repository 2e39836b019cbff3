/** Bodies generated from the document's own schemas: accepted ones, and ones wrong in one place. */
import * as fc from "fast-check"
import { type Operation, type Schema, spec } from "./Catalogue.ts"
import { day } from "../../../support/Fixtures.ts"

const resolved = (schema: Schema): Schema => {
  const { $ref, ...rest } = schema
  if ($ref === undefined) {
    const { type, ...others } = schema
    return Array.isArray(type)
      ? { anyOf: type.map((one) => one === "null" ? { type: one } : { ...others, type: one }) }
      : schema
  }
  return { ...resolved(spec.components.schemas[$ref.split("/").at(-1)]), ...rest }
}

/** The alternatives of a schema, without null. */
const choices = (schema: Schema): ReadonlyArray<Schema> =>
  (schema.anyOf ?? schema.oneOf ?? [schema]).map(resolved).filter(({ type }: Schema) => type !== "null")

// One code point each, of one, two and four bytes; the last is a pair of surrogates.
const letter = fc.constantFrom("a", "B", "7", "-", "é", "ж", "𝒳", "🌿")
const text = (min: number, max: number) =>
  fc.array(letter, { minLength: min, maxLength: Math.min(max, min + 40) }).map((letters) => letters.join(""))
/** A text of exactly this many code points, the longest in UTF-16. */
export const long = (count: number) => "𝒳".repeat(count)

const formatted: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "uri": fc.constantFrom(
    "https://portal.fern.example/",
    "https://a.example/callback?x=1",
    "https://xn--bcher-kva.example",
  ),
  "idn-hostname": fc.constantFrom("fern.example", "Bücher.example", "a.b.c.example"),
  "date-time": fc.integer({ min: 1, max: 364 }).map((days) => new Date(Date.now() + days * day).toISOString()),
  "uuid": fc.uuid(),
}

const string = ({ format, maxLength = 300, minLength = 0, pattern }: Schema): fc.Arbitrary<string> =>
  format !== undefined
    ? formatted[format]!
    : pattern !== undefined
    ? fc.stringMatching(new RegExp(pattern, "u"))
    : fc.oneof(text(minLength, maxLength), fc.constantFrom(long(minLength), long(maxLength)))

const object = ({ properties = {}, required = [] }: Schema): fc.Arbitrary<object> =>
  fc.record(
    Object.fromEntries(Object.entries<Schema>(properties).map(([name, schema]) => [name, admitted(schema)])),
    { requiredKeys: required },
  )

/** Values that the schema accepts. */
export const admitted = (given: Schema): fc.Arbitrary<unknown> => {
  const schema = resolved(given)
  const alternatives: ReadonlyArray<Schema> = schema.anyOf ?? schema.oneOf ?? []
  if (alternatives.length > 0) return fc.oneof(...alternatives.map(admitted))
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  const { maximum, maxItems = 3, minimum = 0, minItems = 0, uniqueItems } = schema
  switch (schema.type) {
    case "null":
      return fc.constant(null)
    case "boolean":
      return fc.boolean()
    case "integer":
      return fc.oneof(
        fc.integer({ min: minimum, max: Math.min(maximum ?? 50, 50) }),
        fc.constant(maximum ?? Number.MAX_SAFE_INTEGER),
      )
    case "array": {
      const lengths = { minLength: minItems, maxLength: maxItems }
      return uniqueItems
        ? fc.uniqueArray(admitted(schema.items), lengths)
        : fc.array(admitted(schema.items), { ...lengths, size: "max" })
    }
    case "string":
      return string(schema)
    default:
      return object(schema)
  }
}

const strange = fc.constantFrom<unknown>(17.5, { a: 1 }, [[]], false)

const badString = (schema: Schema): ReadonlyArray<fc.Arbitrary<unknown>> => [
  strange,
  ...(schema.enum === undefined ? [] : [fc.constant("🌿"), fc.constant(""), fc.constant(`${schema.enum[0]} `)]),
  ...(schema.minLength > 0 ? [fc.constant(long(schema.minLength - 1))] : []),
  ...(schema.maxLength === undefined ? [] : [fc.constant(long(schema.maxLength + 1))]),
  ...(schema.pattern === undefined ? [] : [fc.constant("ü"), fc.constant("")]),
  ...(schema.format === undefined ? [] : [fc.constant("no such thing"), fc.constant("")]),
]

const badArray = (schema: Schema): ReadonlyArray<fc.Arbitrary<unknown>> => {
  const some = (length: number) => fc.array(admitted(schema.items), { minLength: length, maxLength: length })
  return [
    fc.constantFrom<unknown>("text", 7, { 0: "a" }),
    ...(schema.minItems > 0 ? [fc.constant([])] : []),
    ...(schema.maxItems === undefined ? [] : [some(schema.maxItems + 1)]),
    refused(schema.items).map((item) => [item]),
  ]
}

const badObject = (schema: Schema): ReadonlyArray<fc.Arbitrary<unknown>> => {
  const good = object(schema) as fc.Arbitrary<Record<string, unknown>>
  const without = (schema.required ?? []).map((name: string) => good.map(({ [name]: _, ...rest }) => rest))
  const unknown = schema.additionalProperties === false
    ? [good.map((one) => ({ ...one, unknown: 1 })), good.map((one) => ({ ...one, __proto: null, "𝒳": "y" }))]
    : []
  const worse = Object.entries<Schema>(schema.properties ?? {}).map(([name, part]) =>
    fc.tuple(good, refused(part)).map(([one, bad]) => ({ ...one, [name]: bad }))
  )
  return [fc.constantFrom<unknown>("text", 7, []), ...without, ...unknown, ...worse]
}

/** Values that the schema refuses, with at least one fault; without texts that stand for numbers and booleans. */
export const refused = (given: Schema): fc.Arbitrary<unknown> => {
  const schema = resolved(given)
  const [first, ...others] = choices(schema)
  if (others.length > 0) return fc.oneof(fc.constant(17), ...choices(schema).flatMap(badObject))
  const one = first ?? schema
  switch (one.type) {
    case "boolean":
      return one.enum === undefined
        ? fc.constantFrom<unknown>("maybe", 2, 0.5, [], {})
        : fc.constantFrom<unknown>(!one.enum[0], "maybe", {})
    case "integer":
      return fc.constantFrom<unknown>(1.5, "many", {}, [1], ...(one.minimum === undefined ? [] : [one.minimum - 1]))
    case "array":
      return fc.oneof(...badArray(one))
    case "string":
      return fc.oneof(...badString(one))
    default:
      return fc.oneof(...badObject(one))
  }
}

/** The schema of an operation's body. */
export const bodyOf = ({ requestBody }: Operation): Schema | undefined =>
  requestBody === undefined ? undefined : resolved(requestBody.content["application/json"]!.schema)
