/**
 * Marks bodies that refuse unknown members in the document, with all objects inside them. A schema that answers use as
 * well may gain members there, so such a body refers to a copy: `ContactBody` beside `Contact`.
 */
import { at, type DocumentJson, isObject, type JsonObject, prefix } from "./DocumentJson.ts"

export interface StrictBodies {
  /** Closed schemas by the names that `refer` gives them; they replace open schemas of the same name. */
  readonly schemas: JsonObject
  /** The same part of the document, with references to closed schemas only. */
  readonly refer: (value: DocumentJson) => DocumentJson
}

const namesIn = (value: DocumentJson): ReadonlyArray<string> =>
  Array.isArray(value)
    ? value.flatMap(namesIn)
    : isObject(value)
    ? Object.entries(value).flatMap(([key, item]) =>
      key === "$ref" && typeof item === "string" ? [item.slice(prefix.length)] : namesIn(item)
    )
    : []

const reached = (from: DocumentJson, schemas: JsonObject): ReadonlySet<string> => {
  const found = new Set<string>()
  const follow = (value: DocumentJson) => {
    for (const name of namesIn(value)) {
      if (found.has(name)) continue
      found.add(name)
      follow(schemas[name] ?? null)
    }
  }
  follow(from)
  return found
}

/** `strict` has the operations whose bodies refuse unknown members: `POST /v1/people`. */
export const closedIn = (paths: JsonObject, schemas: JsonObject, strict: ReadonlySet<string>): StrictBodies => {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as JsonObject).map(([method, value]) => ({
      value,
      strict: strict.has(`${method.toUpperCase()} ${path}`),
    }))
  )
  const bodies = operations.flatMap(({ strict, value }) => strict ? [at(value, "requestBody") ?? null] : [])
  const others = operations.flatMap(({ strict, value }) => [
    at(value, "responses") ?? null,
    ...(strict ? [] : [at(value, "requestBody") ?? null]),
  ])
  const grows = reached(others, schemas)
  const names = new Map(
    [...reached(bodies, schemas)]
      // A scalar has no members; it needs no copy.
      .filter((name) => !grows.has(name) || JSON.stringify(schemas[name]).includes("additionalProperties"))
      .map((name) => [name, grows.has(name) ? `${name}Body` : name]),
  )
  const refer = (value: DocumentJson): DocumentJson =>
    Array.isArray(value) ? value.map(refer) : isObject(value)
      ? Object.fromEntries(
        Object.entries(value).map(([key, item]) => {
          const name = key === "$ref" && typeof item === "string" ? names.get(item.slice(prefix.length)) : undefined
          return [key, name === undefined ? refer(item) : prefix + name]
        }),
      )
      : value
  return {
    schemas: Object.fromEntries([...names].map(([name, as]) => [as, refer(schemas[name] ?? null)])),
    refer,
  }
}
