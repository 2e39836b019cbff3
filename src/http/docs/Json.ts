/** A document as plain JSON, and ways into it. */

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const at = (value: Json | undefined, ...path: ReadonlyArray<string>): Json | undefined =>
  path.reduce<Json | undefined>((current, key) => isObject(current) ? current[key] : undefined, value)

/** The beginning of a reference to a schema of the document. */
export const prefix = "#/components/schemas/"

/** The schema that a `$ref` refers to, or the schema itself. */
export const resolved = (schema: Json | undefined, spec: JsonObject): Json | undefined => {
  const ref = at(schema, "$ref")
  return typeof ref === "string" ? at(spec, "components", "schemas", ref.slice(prefix.length)) : schema
}
