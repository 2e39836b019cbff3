/**
 * Schemas that have every member of another one refer to it: `WebhookDetails` is `Webhook` and two members more, in
 * the document and in the clients that are generated from it.
 */
import { at, type DocumentJson, isObject, type JsonObject, prefix } from "./DocumentJson.ts"

/** A base with fewer members saves nothing, and says nothing. */
const fewest = 4

const plainKeys = new Set(["type", "properties", "required"])

const membersOf = (schema: DocumentJson): ReadonlyMap<string, string> | null => {
  const properties = at(schema, "properties")
  const isPlain = isObject(schema) && isObject(properties) && Object.keys(schema).every((key) => plainKeys.has(key))
  if (!isPlain) return null
  const required = requiredOf(schema)
  return new Map(
    Object.entries(properties).map(([name, member]) => [name, JSON.stringify([required.includes(name), member])]),
  )
}

const requiredOf = (schema: DocumentJson): ReadonlyArray<DocumentJson> => {
  const required = at(schema, "required")
  return Array.isArray(required) ? required : []
}

const rest = (schema: DocumentJson, base: string, inherited: ReadonlySet<string>): JsonObject => {
  const properties = Object.entries(at(schema, "properties") as JsonObject).filter(([name]) => !inherited.has(name))
  const required = requiredOf(schema).filter((name) => !inherited.has(String(name)))
  return {
    allOf: [{ "$ref": prefix + base }],
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
  }
}

/** The schemas, each that has all members of others as an extension of the largest of these. */
export const extended = (schemas: JsonObject): JsonObject => {
  const members = new Map(
    Object.entries(schemas).flatMap(([name, schema]) => {
      const found = membersOf(schema)
      return found === null ? [] : [[name, found] as const]
    }),
  )
  const baseOf = (name: string): string | undefined => {
    const own = members.get(name)
    if (own === undefined) return undefined
    const bases = [...members].filter(([, base]) =>
      base.size >= fewest && base.size < own.size && [...base].every(([member, text]) => own.get(member) === text)
    )
    return bases.sort(([, a], [, b]) => b.size - a.size)[0]?.[0]
  }
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const base = baseOf(name)
      return [name, base === undefined ? schema : rest(schema, base, new Set(members.get(base)!.keys()))]
    }),
  )
}
