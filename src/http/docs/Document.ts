/**
 * The OpenAPI document: the one that Effect derives from the contract, in the form that clients of FastAPI services
 * know.
 *
 * It differs from Effect's in: FastAPI's own two validation schemas word for word, scalars as they are meant (`x-wire`)
 * instead of as they are read, names without `Encoded`, objects that may gain members, except bodies that refuse
 * unknown ones (docs/StrictBodies.ts), and the headers of answers (docs/Headers.ts).
 */
import { Context } from "effect"
import { HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api"
import { fastApiSchemas } from "../../../schemas/Validation.ts"
import { closedIn, type StrictBodies } from "./StrictBodies.ts"
import { withComponents } from "./Components.ts"
import { descriptions } from "./OperationDescriptions.ts"
import { introduction } from "./Introduction.ts"
import { withWebhooks } from "./EventWebhooks.ts"
import { extended } from "./Extended.ts"
import { withHeaders } from "./Headers.ts"
import { problemSchemas } from "./ProblemSchemas.ts"
import { at, type DocumentJson, isObject, type JsonObject, resolved } from "./DocumentJson.ts"

export const version = "0.2.0"

const safe = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])

/** Merges `allOf` into its schema where the two agree: Effect puts the checks of a type there. */
const flattened = (schema: JsonObject): JsonObject => {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf)) return schema
  const parts = allOf.filter(isObject)
  const agree = parts.length === allOf.length &&
    parts.every((part) =>
      Object.entries(part).every(([key, item]) =>
        key !== "$ref" && (!(key in rest) || JSON.stringify(rest[key]) === JSON.stringify(item))
      )
    )
  return agree ? Object.assign(rest, ...parts) as JsonObject : schema
}

const scalars = new Set(["string", "integer", "number", "boolean"])

/** The alternatives without repeats; a scalar or null is one schema of two types. */
const alternatives = (schema: JsonObject): JsonObject => {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const distinct = [...new Map(anyOf.map((one) => [JSON.stringify(one), one as DocumentJson])).values()]
  const [first, second] = distinct
  if (distinct.length === 1) return { ...rest, ...first as JsonObject }
  const type = at(first, "type")
  const nullable = distinct.length === 2 && isObject(first) && JSON.stringify(second) === `{"type":"null"}` &&
    typeof type === "string" && scalars.has(type) && !("enum" in first) && !("const" in first) &&
    !Object.keys(first).some((key) => key in rest)
  return nullable ? { ...first, type: [type, "null"], ...rest } : { ...rest, anyOf: distinct }
}

/** A schema as the document shows it; `open` leaves out that unknown members are refused. */
const advertised = (value: DocumentJson, open: boolean): DocumentJson => {
  if (Array.isArray(value)) return value.map((item) => advertised(item, open))
  if (!isObject(value)) return value
  const { "x-wire": wire, ...rest } = flattened(value)
  if (isObject(wire)) {
    const { type: _type, anyOf: _anyOf, ...kept } = rest
    return { ...wire, ...kept }
  }
  return alternatives(Object.fromEntries(
    Object.entries(rest)
      .filter(([key, item]) => !(open && key === "additionalProperties" && item === false))
      .filter(([key, item]) =>
        !((key === "minimum" || key === "maximum") && typeof item === "number" && safe.has(item))
      )
      .map(([key, item]) => [key, advertised(item, open)]),
  ))
}

/** The operations whose bodies refuse unknown members: `POST /v1/people`. */
const strictOperations = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
) => {
  const strict = new Set<string>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const options = Context.getOrUndefined(mergedAnnotations, HttpApi.PayloadParseOptions) ??
        Context.getOrUndefined(mergedAnnotations, HttpApi.ParseOptions)
      const path = endpoint.path.replaceAll(/:([A-Za-z0-9_]+)/g, "{$1}")
      if (options?.onExcessProperty === "error") strict.add(`${endpoint.method} ${path}`)
    },
  })
  return strict
}

const ofBody = new Set(["400", "408"])

/**
 * Keeps the errors that an operation can answer. 400 means an unreadable body, 408 a late one; 422, or 400 where the
 * operation has no 422, means an invalid body or parameter. 413 and 415 stay everywhere: a client may send a body to any operation.
 */
const answers = (responses: JsonObject, hasBody: boolean, hasParameters: boolean): JsonObject => {
  const invalid = "422" in responses ? "422" : "400"
  return Object.fromEntries(
    Object.entries(responses).filter(([status]) =>
      hasBody || (status === invalid ? hasParameters : !ofBody.has(status))
    ),
  )
}

const operation = (value: DocumentJson, closed: StrictBodies | null, spec: JsonObject): DocumentJson => {
  if (!isObject(value)) return value
  const { operationId, requestBody, responses, parameters, ...rest } = value
  const hasParameters = Array.isArray(parameters) && parameters.length > 0
  const id = String(operationId).replace(/^[^.]+\./, "")
  const description = descriptions[id]
  const open = {
    ...advertised(rest, true) as JsonObject,
    operationId: id,
    ...(description === undefined ? {} : { description }),
    parameters: advertised(parameters ?? [], true),
    responses: withHeaders(
      advertised(answers(responses as JsonObject, isObject(requestBody), hasParameters), true) as JsonObject,
      parameters ?? [],
    ),
  }
  if (!isObject(requestBody)) return open
  const body = advertised(closed === null ? requestBody : closed.refer(requestBody), closed === null) as JsonObject
  const schema = resolved(at(body, "content", "application/json", "schema"), spec)
  const required = at(schema, "required")
  return { ...open, requestBody: { ...body, required: Array.isArray(required) && required.length > 0 } }
}

/** The name of a schema without Effect's `Encoded`, unless another schema has it. */
const shortName = (name: string, names: ReadonlySet<string>): string => {
  const short = name.replace(/Encoded$/, "")
  return names.has(short) ? name : short
}

const renamed = (text: string, names: ReadonlySet<string>): string =>
  text.replaceAll(
    /"#\/components\/schemas\/([^"]+Encoded)"/g,
    (_, name: string) => `"#/components/schemas/${shortName(name, names)}"`,
  )

/** The document with the most frequent `security` said once, for the operations that say none of their own. */
const withSecurity = (spec: JsonObject): JsonObject => {
  const operations = Object.values(spec["paths"] as JsonObject)
    .flatMap((methods) => Object.values(methods as JsonObject) as ReadonlyArray<JsonObject>)
  const counts = Map.groupBy(operations, ({ security }) => JSON.stringify(security))
  const [most] = [...counts].sort(([, a], [, b]) => b.length - a.length)
  if (most === undefined || most[0] === "[]") return spec
  const without = ({ security, ...operation }: JsonObject): JsonObject =>
    JSON.stringify(security) === most[0] ? operation : { ...operation, ...security === undefined ? {} : { security } }
  const paths = Object.entries(spec["paths"] as JsonObject).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods as JsonObject).map(([method, value]) => [method, without(value as JsonObject)]),
    ),
  ])
  return { ...spec, security: JSON.parse(most[0]!), paths: Object.fromEntries(paths) }
}

/** The document of an api, as plain JSON. */
export const document = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
): JsonObject => {
  const spec = OpenApi.fromApi(api, { includeAnnotationKey: (key) => key === "x-wire" })
  const names = new Set(Object.keys(spec.components.schemas))
  const plain = JSON.parse(renamed(JSON.stringify(spec), names)) as JsonObject
  const strict = strictOperations(api)
  const short = Object.fromEntries(
    Object.entries(at(plain, "components", "schemas") as JsonObject)
      .map(([name, schema]) => [shortName(name, names), schema] as const),
  )
  const problems = problemSchemas(short)
  const schemas = Object.fromEntries(
    Object.entries(short).filter(([name]) => !problems.has(name)).concat(Object.entries(problems.schemas))
      .sort(([a], [b]) => a < b ? -1 : 1),
  )
  const known = { components: { schemas } }
  const closed = closedIn(at(plain, "paths") as JsonObject, schemas, strict)
  const paths = Object.entries(at(plain, "paths") as JsonObject).map(([path, methods]) =>
    [
      path,
      Object.fromEntries(
        Object.entries(methods as JsonObject).map((
          [method, value],
        ) => [method, operation(value, strict.has(`${method.toUpperCase()} ${path}`) ? closed : null, known)]),
      ),
    ] as const
  )
  return withSecurity(withWebhooks(withComponents({
    ...plain,
    info: {
      ...plain["info"] as JsonObject,
      version,
      description: introduction,
      license: { name: "MIT", identifier: "MIT" },
    },
    paths: Object.fromEntries(paths),
    components: {
      ...plain["components"] as JsonObject,
      schemas: {
        ...extended(advertised(schemas, true) as JsonObject),
        ...advertised(closed.schemas, false) as JsonObject,
        ...fastApiSchemas,
      },
    },
  }, problems)))
}
