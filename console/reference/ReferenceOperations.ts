/** The operations of the OpenAPI document that the server itself gives, as the reference shows them. */

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required: boolean
  readonly description: string
  /** The values that it may have; empty where there are others. */
  readonly values: ReadonlyArray<string>
  readonly fallback: string | undefined
}

export interface Operation {
  readonly id: string
  readonly tag: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly takesBody: boolean
  /** Status and what it says. */
  readonly answers: ReadonlyArray<readonly [status: string, description: string]>
  /** Whether its answer has no end. */
  readonly streams: boolean
}

// deno-lint-ignore no-explicit-any
type Json = any

const resolved = (part: Json, document: Json): Json =>
  typeof part?.$ref === "string"
    ? part.$ref.split("/").slice(1).reduce((one: Json, name: string) => one?.[name], document)
    : part

const parameterOf = (given: Json, document: Json): Parameter => {
  const { description = "", in: place, name, required = false, schema } = resolved(given, document)
  const { default: fallback, description: more = "", enum: values = [] } = resolved(schema, document) ?? {}
  return {
    name,
    in: place,
    required,
    description: description || more,
    values: values.map(String),
    fallback: fallback === undefined ? undefined : String(fallback),
  }
}

const operationOf = (path: string, method: string, value: Json, document: Json): Operation => {
  const answers = Object.entries<Json>(value.responses).map(([status, answer]) =>
    [status, resolved(answer, document)] as const
  )
  return {
    id: value.operationId,
    tag: value.tags?.[0] ?? "",
    method: method.toUpperCase(),
    path,
    summary: value.summary ?? "",
    description: value.description ?? "",
    parameters: (value.parameters ?? []).map((one: Json) => parameterOf(one, document)),
    takesBody: value.requestBody !== undefined,
    answers: answers.map(([status, { description }]) => [status, description] as const),
    streams: answers.some(([, { content }]) => content !== undefined && "text/event-stream" in content),
  }
}

/** The operations of a document, in its order. */
export const operationsOf = (document: Json): ReadonlyArray<Operation> =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, value]) => operationOf(path, method, value, document))
  )

/** Whether an operation has each of these words in its name, path or texts. */
export const found = (operation: Operation, words: string): boolean => {
  const { description, id, method, path, summary, tag } = operation
  const text = [id, method, path, summary, description, tag].join(" ").toLowerCase()
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word))
}
