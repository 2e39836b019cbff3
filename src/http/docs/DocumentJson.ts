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

/** The part of the document that a `$ref` refers to, or the part itself. */
export const resolved = (part: DocumentJson | undefined, spec: JsonObject): DocumentJson | undefined => {
  const ref = at(part, "$ref")
  return typeof ref === "string" ? at(spec, ...ref.slice("#/".length).split("/")) : part
}
