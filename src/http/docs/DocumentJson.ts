/** A document as plain JSON, and ways into it. */

export type DocumentJson = null | boolean | number | string | ReadonlyArray<DocumentJson> | {
  readonly [key: string]: DocumentJson
}
export type JsonObject = { readonly [key: string]: DocumentJson }

export const isObject = (value: DocumentJson | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const at = (value: DocumentJson | undefined, ...path: ReadonlyArray<string>): DocumentJson | undefined =>
  path.reduce<DocumentJson | undefined>((current, key) => isObject(current) ? current[key] : undefined, value)

/** The beginning of a reference to a schema of the document. */
export const prefix = "#/components/schemas/"

/** The schema that a `$ref` refers to, or the schema itself. */
export const resolved = (schema: DocumentJson | undefined, spec: JsonObject): DocumentJson | undefined => {
  const ref = at(schema, "$ref")
  return typeof ref === "string" ? at(spec, "components", "schemas", ref.slice(prefix.length)) : schema
}
