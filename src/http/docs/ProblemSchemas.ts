/**
 * The problems of the document. One schema, `Problem`, has the members of all; an answer narrows `code` to the codes
 * that it may carry, so that a client's `switch` over them is checked. A problem with members of its own has a schema.
 */
import { at, type DocumentJson, isObject, type JsonObject, prefix } from "./DocumentJson.ts"

const common = ["type", "title", "status", "detail", "instance", "code", "request_id", "audit_id", "retry_after"]

/** The base of all of them (RFC 9457, section 3). */
const base: JsonObject = {
  type: "object",
  description: "RFC 9457. Decide by `code`; a code that you do not know is handled by its status.",
  properties: {
    type: { type: "string", description: "`urn:bailiwick:problem:` and the code" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string" },
    code: { type: "string" },
    request_id: { type: "string" },
    audit_id: { type: ["string", "null"], format: "uuid" },
    retry_after: { type: "integer", description: "As `Retry-After`" },
  },
  required: ["code", "type"],
}

const only = (schema: DocumentJson, member: string): string | undefined => {
  const values = at(schema, "properties", member, "enum")
  return Array.isArray(values) && values.length === 1 ? String(values[0]) : undefined
}

/** The code of a problem's schema; undefined for other schemas. */
const codeOf = (schema: DocumentJson | undefined): string | undefined =>
  schema !== undefined && only(schema, "title") !== undefined ? only(schema, "code") : undefined

const extrasOf = (schema: DocumentJson): JsonObject =>
  Object.fromEntries(
    Object.entries(at(schema, "properties") as JsonObject).filter(([name]) => !common.includes(name)),
  )

const ofCodes = (codes: ReadonlyArray<string>, extras: JsonObject = {}, required: ReadonlyArray<string> = []) => ({
  // The types of the whole and of `code` are those of `Problem`.
  allOf: [{ "$ref": `${prefix}Problem` }],
  properties: { code: { enum: [...new Set(codes)] }, ...extras },
  ...(required.length > 0 ? { required } : {}),
})

export interface ProblemSchemas {
  /** `Problem` and the problems with members of their own, by name. */
  readonly schemas: JsonObject
  /** Whether a schema of this name is a problem. */
  readonly has: (name: string) => boolean
  /** The codes of these problems, each with its title. */
  readonly titles: (names: ReadonlyArray<string>) => ReadonlyMap<string, string>
  /** Whether one of these problems passes by itself, and says when. */
  readonly pass: (names: ReadonlyArray<string>) => boolean
  /** The schema of an answer that carries one of these problems. */
  readonly anyOf: (names: ReadonlyArray<string>) => JsonObject
}

/** The problems among the contract's schemas. */
export const problemSchemas = (schemas: JsonObject): ProblemSchemas => {
  const codes = new Map(
    Object.entries(schemas).flatMap(([name, schema]) => {
      const code = codeOf(schema)
      return code === undefined ? [] : [[name, code] as const]
    }),
  )
  const plain = (name: string) => Object.keys(extrasOf(schemas[name]!)).length === 0
  const extended = [...codes].filter(([name]) => !plain(name)).map(([name, code]) => {
    const required = at(schemas[name], "required") as ReadonlyArray<string>
    const own = required.filter((member) => !common.includes(member))
    return [name, ofCodes([code], extrasOf(schemas[name]!), own)] as const
  })
  return {
    schemas: { Problem: base, ...Object.fromEntries(extended) },
    has: (name) => codes.has(name),
    titles: (names) =>
      new Map(names.flatMap((name) => {
        const code = codes.get(name)
        return code === undefined ? [] : [[code, only(schemas[name]!, "title")!] as const]
      })),
    pass: (names) => names.some((name) => at(schemas[name], "properties", "retry_after") !== undefined),
    anyOf: (names) => {
      const simple = names.filter(plain)
      const parts: ReadonlyArray<JsonObject> = [
        ...(simple.length > 0 ? [ofCodes(simple.map((name) => codes.get(name)!))] : []),
        ...names.filter((name) => !plain(name)).map((name) => ({ "$ref": prefix + name })),
      ]
      return parts.length === 1 ? parts[0]! : { anyOf: parts }
    },
  }
}

/** The schemas that a media type of an answer names: one, or the alternatives of `anyOf`. */
export const namesIn = (schema: DocumentJson | undefined): ReadonlyArray<string> => {
  const any = at(schema, "anyOf")
  return [
    ...new Set((Array.isArray(any) ? any : [schema]).flatMap((one) => {
      const ref = isObject(one) ? one["$ref"] : undefined
      return typeof ref === "string" ? [ref.slice(prefix.length)] : []
    })),
  ]
}
