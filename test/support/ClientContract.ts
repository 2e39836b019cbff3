/**
 * Makes sdk/client/Contract.ts and sdk/client/KeyedPaths.ts of the OpenAPI document: `deno task client:contract` writes
 * them. They name no type of Effect, so the package needs none of it.
 */
import { writeFileSync } from "node:fs"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { Api } from "../../schemas/api/Api.ts"
import { document } from "../../src/http/docs/Document.ts"
import { at, type DocumentJson, isObject, type JsonObject, prefix, resolved } from "../../src/http/docs/DocumentJson.ts"

export const contractFile = new URL("../../sdk/client/Contract.ts", import.meta.url)
export const keyedFile = new URL("../../sdk/client/KeyedPaths.ts", import.meta.url)

const spec = document(Api)
const methods = ["get", "post", "put", "patch", "delete"]

const list = (value: DocumentJson | undefined): ReadonlyArray<DocumentJson> =>
  Array.isArray(value) ? value as ReadonlyArray<DocumentJson> : []
const entries = (value: DocumentJson | undefined): ReadonlyArray<readonly [string, DocumentJson]> =>
  isObject(value) ? Object.entries(value) : []
const nameOf = (ref: string) => ref.slice(prefix.length).replaceAll(/[^A-Za-z0-9]/g, "_")
const keyOf = (name: string) => /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)
const union = (types: ReadonlyArray<string>) => [...new Set(types)].join(" | ")
const doc = (text: DocumentJson | undefined) =>
  typeof text === "string" ? `/** ${text.replaceAll("*/", "* /")} */ ` : ""

const objectType = (schema: JsonObject): string => {
  const required = list(schema["required"])
  const members = entries(schema["properties"]).map(([name, member]) =>
    `${doc(at(member, "description"))}readonly ${keyOf(name)}${required.includes(name) ? "" : "?"}: ${typeOf(member)}`
  )
  const others = schema["additionalProperties"]
  if (members.length > 0) return `{ ${members.join("; ")} }`
  return `{ readonly [name: string]: ${isObject(others) ? typeOf(others) : "unknown"} }`
}

const typeOf = (schema: DocumentJson | undefined): string => {
  if (!isObject(schema)) return "unknown"
  const ref = schema["$ref"]
  if (typeof ref === "string") return nameOf(ref)
  if (schema["enum"] !== undefined) return union(list(schema["enum"]).map((one) => JSON.stringify(one)))
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"])
  const bases = list(schema["allOf"])
  if (bases.length > 0) {
    const { allOf: _, ...own } = schema
    return [...bases.map(typeOf), ...(at(own, "properties") === undefined ? [] : [objectType(own)])].join(" & ")
  }
  const choices = [...list(schema["anyOf"]), ...list(schema["oneOf"])]
  if (choices.length > 0) return union(choices.map(typeOf))
  const kind = schema["type"]
  if (Array.isArray(kind)) return union(kind.map((one) => typeOf({ ...schema, type: one })))
  if (kind === "array") return `ReadonlyArray<${typeOf(schema["items"])}>`
  if (kind === "object" || schema["properties"] !== undefined) return objectType(schema)
  if (kind === "integer" || kind === "number") return "number"
  return kind === "string" || kind === "boolean" || kind === "null" ? kind : "unknown"
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly value: DocumentJson
}

const operations: ReadonlyArray<Operation> = entries(spec["paths"]).flatMap(([path, ways]) =>
  methods.flatMap((method) => {
    const value = at(ways, method)
    return value === undefined ? [] : [{ method: method.toUpperCase(), path, value }]
  })
).sort((a, b) => a.path + a.method < b.path + b.method ? -1 : 1)

const answerOf = (operation: DocumentJson): string => {
  const found = entries(at(operation, "responses")).filter(([status]) => status.startsWith("2"))
  return union(found.map(([, response]) => {
    const [content] = entries(at(resolved(response, spec), "content"))
    if (content === undefined) return "undefined"
    const [media, body] = content
    return /\bjson/.test(media) ? typeOf(at(body, "schema")) : media === "application/octet-stream" ? "Blob" : "string"
  }))
}

/** Headers that the client sends by itself are no part of a request. */
const own = ["idempotency-key", "last-event-id"]

const operationType = ({ method, path, value }: Operation): string => {
  const parameters = list(at(value, "parameters")).map((one) => resolved(one, spec) ?? null)
  const section = (name: string, where: string) => {
    const found = parameters.filter((one) => at(one, "in") === where && !own.includes(String(at(one, "name"))))
    if (found.length === 0) return []
    const isRequired = (one: DocumentJson) => at(one, "required") === true
    const members = found.map((one) =>
      `readonly ${keyOf(String(at(one, "name")))}${isRequired(one) ? "" : "?"}: ${typeOf(at(one, "schema"))}${
        isRequired(one) ? "" : " | undefined"
      }`
    )
    return [`readonly ${name}${found.some(isRequired) ? "" : "?"}: { ${members.join("; ")} }`]
  }
  const body = at(value, "requestBody")
  const [content] = entries(at(body, "content"))
  const sections = [
    ...section("params", "path"),
    ...section("query", "query"),
    ...section("headers", "header"),
    ...(content === undefined
      ? []
      : [`readonly body${at(body, "required") === true ? "" : "?"}: ${typeOf(at(content[1], "schema"))}`]),
  ]
  const request = sections.length === 0 ? "None" : `{ ${sections.join("; ")} }`
  const name = JSON.stringify(`${method} ${path}`)
  return `  ${doc(at(value, "summary")).trim()}\n  readonly ${name}: { readonly request: ${request}; readonly answer: ${
    answerOf(value)
  } }`
}

interface ProblemType {
  /** Empty for a problem that any operation may answer: the document does not say with which status. */
  readonly statuses: Set<string>
  readonly members: Map<string, string>
}

/** Notes the problems that a schema of an answer allows, each a `Problem` narrowed by its codes. */
const noteProblems = (found: Map<string, ProblemType>, status: string, schema: DocumentJson | undefined): void => {
  const one = resolved(schema, spec)
  for (const choice of list(at(one, "anyOf"))) noteProblems(found, status, choice)
  const codes = list(at(one, "properties", "code", "enum"))
  if (at(list(at(one, "allOf"))[0], "$ref") !== `${prefix}Problem`) return
  for (const code of codes.map(String)) {
    const known = found.get(code) ?? { statuses: new Set(), members: new Map() }
    if (/^\d+$/.test(status)) known.statuses.add(status)
    for (const [name, member] of entries(at(one, "properties"))) {
      if (name !== "code") known.members.set(name, typeOf(member))
    }
    found.set(code, known)
  }
}

/** The members of each code beside those that every problem has. */
const problemTypes = (): ReadonlyArray<string> => {
  const found = new Map<string, ProblemType>()
  for (const { value } of operations) {
    for (const [status, response] of entries(at(value, "responses"))) {
      const content = at(resolved(response, spec), "content", "application/problem+json", "schema")
      noteProblems(found, status, content)
    }
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1).map(([code, { members, statuses }]) => {
    const own = [...members].map(([name, type]) => `readonly ${keyOf(name)}?: ${type}`)
    const type = own.length === 0 ? "None" : `{ ${own.join("; ")} }`
    const status = statuses.size === 0 ? "number" : [...statuses].sort().join(" | ")
    return `  readonly ${code}: { readonly status: ${status}; readonly members: ${type} }`
  })
}

/** The text of Contract.ts. */
export const clientContract = (): string => {
  const problem = (schema: DocumentJson) => at(list(at(schema, "allOf"))[0], "$ref") === `${prefix}Problem`
  const schemas = entries(at(spec, "components", "schemas")).filter(([, schema]) => !problem(schema))
  const all = schemas.map(([name, schema]) => [nameOf(prefix + name), typeOf(schema)] as const)
  const types = all.map(([name, type]) => `export type ${name} = ${type}`)
  return `/**
 * The types of every operation, body and problem, made of the OpenAPI document by \`deno task client:contract\`.
 * @module
 */
// deno-fmt-ignore-file

/** No member. */
export type None = Readonly<Record<never, never>>

${types.join("\n")}

/** The problems by their codes: the status, and the members beside those that every problem has. */
export interface Problems {
${problemTypes().join("\n")}
}

/** The operations by method and path. */
export interface Operations {
${operations.map(operationType).join("\n")}
}
`
}

const isKeyed = ({ value }: Operation) =>
  list(at(value, "parameters")).some((one) => at(resolved(one, spec), "name") === "idempotency-key")

/** A pattern of these lists of words, by their common beginnings. */
const patternOf = (paths: ReadonlyArray<ReadonlyArray<string>>): string =>
  [...Map.groupBy(paths, ([first]) => first!)].map(([first, all]) => {
    if (all.length === 1) return all[0]!.join("_")
    const rest = all.map(([, ...words]) => words).filter(({ length }) => length > 0)
    const pattern = patternOf(rest)
    if (rest.length === all.length) return pattern.includes("|") ? `${first}_(${pattern})` : `${first}_${pattern}`
    return `${first}(_${rest.length === 1 ? pattern : `(${pattern})`})?`
  }).join("|")

/** The words of a path without `/v1/`, with `_` for a slash and for a slash with a parameter. */
const wordsOf = ({ path }: Operation) => path.slice("/v1/".length).replaceAll(/\/(\{\w+\})?/g, "_").split("_")

/** Their paths; where all POSTs with a beginning are keyed, the beginning alone. */
const keyedPattern = () => {
  const posts = operations.filter(({ method }) => method === "POST")
  const others = posts.filter((one) => !isKeyed(one)).map(wordsOf)
  const paths = posts.filter(isKeyed).map(wordsOf).map((words) => {
    const alone = words.findIndex((_, n) =>
      !others.some((other) => words.slice(0, n + 1).every((w, i) => other[i] === w))
    )
    return alone === -1 || alone === words.length - 1 ? words : [...words.slice(0, alone + 1), ".*"]
  })
  return patternOf([...new Map(paths.map((words) => [words.join("_"), words])).values()])
}

/** The text of KeyedPaths.ts. */
export const clientKeyedPaths = (): string =>
  `/**
 * The paths whose POST keeps a receipt under an Idempotency-Key, without \`/v1/\`, with \`_\` for a slash and for a slash
 * with a parameter: made of the OpenAPI document by \`deno task client:contract\`.
 */
// deno-fmt-ignore-file

export const keyedPaths = /^(${keyedPattern()})$/
`

/** The names of an item's members, those of the schemas that it extends first. */
const membersOf = (schema: DocumentJson | undefined): ReadonlyArray<string> => {
  const one = resolved(schema, spec)
  return [...list(at(one, "allOf")).flatMap(membersOf), ...entries(at(one, "properties")).map(([name]) => name)]
}

/** The lists that are followed by the id of their last item: the path, and the first member of an item, which is that id. */
export const listsByLastId = (): ReadonlyArray<readonly [path: string, first: string | undefined]> =>
  operations.flatMap(({ path, value }) => {
    const names = list(at(value, "parameters")).map((one) => at(resolved(one, spec), "name"))
    const [content] = entries(at(value, "responses", "200", "content"))
    const page = resolved(at(content?.[1], "schema"), spec)
    if (!names.includes("after_id") || membersOf(page).includes("next_after_id")) return []
    const item = at(page, "properties", "items", "items") ?? at(page, "items")
    // Two lists in one answer, each followed by a parameter of its own, are no pages of the client's.
    return names.includes("after_access_id") ? [] : [[path, membersOf(item)[0]] as const]
  })

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  writeFileSync(contractFile, clientContract())
  writeFileSync(keyedFile, clientKeyedPaths())
}
