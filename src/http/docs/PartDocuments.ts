/** The document of one part of the API, whole by itself. */
import { type Part, parts, titles } from "./ApiParts.ts"
import { type DocumentJson, isObject, type JsonObject } from "./DocumentJson.ts"
import { partIntroduction } from "./Introduction.ts"
import { examplePath, examples } from "./RecordedExamples.ts"

const referencesIn = (value: DocumentJson): ReadonlyArray<string> =>
  Array.isArray(value)
    ? value.flatMap(referencesIn)
    : isObject(value)
    ? Object.entries(value).flatMap(([key, item]) =>
      key === "$ref" && typeof item === "string" ? [item] : referencesIn(item)
    )
    : []

/** The schemes of credentials that these operations name, or take from the whole. */
const schemesOf = (paths: JsonObject, shared: DocumentJson): ReadonlySet<string> =>
  new Set(
    Object.values(paths).flatMap((methods) => Object.values(methods as JsonObject))
      .flatMap((operation) => ((operation as JsonObject)["security"] ?? shared) as ReadonlyArray<JsonObject>)
      .flatMap((one) => Object.keys(one)),
  )

/** The components that these parts of the document refer to, and those that these refer to. */
const reached = (
  from: ReadonlyArray<DocumentJson>,
  components: JsonObject,
  schemes: ReadonlySet<string>,
): JsonObject => {
  const found = new Set<string>()
  const follow = (value: DocumentJson) => {
    for (const reference of referencesIn(value)) {
      if (found.has(reference)) continue
      found.add(reference)
      const [section, name] = reference.slice("#/components/".length).split("/")
      follow((components[section!] as JsonObject)[name!]!)
    }
  }
  from.forEach(follow)
  return Object.fromEntries(
    Object.entries(components).map(([section, all]) => [
      section,
      Object.fromEntries(
        Object.entries(all as JsonObject).filter(([name]) =>
          section === "securitySchemes" ? schemes.has(name) : found.has(`#/components/${section}/${name}`)
        ),
      ),
    ]),
  )
}

const isIn = (part: Part, operation: DocumentJson): boolean => {
  const tags: ReadonlyArray<string> = parts[part]
  const own = isObject(operation) ? operation["tags"] : undefined
  return Array.isArray(own) && tags.includes(String(own[0]))
}

/**
 * An operation that names its recorded example. `externalValue` beside each body would say the same, but generators resolve
 * it as a reference, and fail on a document that was saved to a file (openapi-typescript 7.13, Redocly's resolver). The
 * whole document names no example: it would grow by 10 kB.
 */
const withExample = (operation: JsonObject): JsonObject => {
  const id = String(operation["operationId"])
  const externalDocs = { description: "A recorded request and its answer", url: examplePath(id) }
  return id in examples ? { ...operation, externalDocs } : operation
}

/** The operations of a part, and what these refer to. */
export const partDocument = (spec: JsonObject, part: Part): JsonObject => {
  const paths = Object.entries(spec["paths"] as JsonObject).flatMap(([path, methods]) => {
    const own = Object.entries(methods as JsonObject).filter(([, operation]) => isIn(part, operation))
    const shown = own.map(([method, operation]) => [method, withExample(operation as JsonObject)] as const)
    return own.length === 0 ? [] : [[path, Object.fromEntries(shown)] as const]
  })
  const { components, info, security, tags, webhooks, ...rest } = spec
  const events = part === "mail" && webhooks !== undefined ? { webhooks } : {}
  const operations = Object.fromEntries(paths)
  const { title, ...more } = info as JsonObject
  const schemes = schemesOf(operations, security ?? [])
  const isShared = JSON.stringify(security ?? []) !== "[]" &&
    (security as ReadonlyArray<JsonObject>).every((one) => Object.keys(one).every((name) => schemes.has(name)))
  return {
    ...rest,
    info: { title: `${String(title)}: ${titles[part]}`, ...more, description: partIntroduction },
    ...isShared ? { security: security! } : {},
    paths: operations,
    tags: (tags as ReadonlyArray<DocumentJson>).filter((tag) => isObject(tag) && isIn(part, { tags: [tag["name"]!] })),
    ...events,
    components: reached([operations, events], components as JsonObject, schemes),
  }
}
