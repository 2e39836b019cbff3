/**
 * Decodes the sections of an endpoint's requests and collects every fault.
 *
 * HttpApi stops at the first section that fails. Only then are all sections decoded again here: path, query, header,
 * body, in this order.
 */
import { Context, Exit, Schema, type SchemaAST } from "effect"
import { HttpApi, type HttpApiEndpoint, type HttpApiGroup } from "effect/http-api"
import { type Called, CalledAddresses, SecretRequest } from "../../../schemas/api/RequestValidation.ts"
import { type Bounded, bounded, maxFaults, shortName } from "../../../schemas/Validation/Bounds.ts"
import { type Complaint, type Fault, missing, notFinite } from "../../../schemas/Validation/Fault.ts"
import type { JsonFault } from "../../../schemas/Validation/Json.ts"
import { isListFilter, unstorable } from "../../../schemas/Validation/Scalars.ts"
import { faultsOf } from "../../../schemas/Validation/Translate.ts"

type Decode = (input: unknown) => ReadonlyArray<Fault>

export interface RequestDecoders {
  readonly path: Decode
  readonly query: Decode
  readonly header: Decode
  readonly body: Decode
  /** Whether a list or map of a body is longer than any decoder needs to see. */
  readonly overflows: (body: unknown) => boolean
  /** Whether an answer may repeat the input. */
  readonly echoes: boolean
  /** Query fields that take a list; of any other field the last value counts. */
  readonly lists: ReadonlySet<string>
  /** Query fields that accept any text: a filter that no row meets gives an empty list. */
  readonly filters: ReadonlySet<string>
  /** The addresses in a body that the program will call. */
  readonly addresses: Called
  /** Sorts a body's faults in the order of its fields; faults of no field come last. */
  readonly inOrder: (faults: ReadonlyArray<Fault>) => ReadonlyArray<Fault>
  /** The media types of a body, none where the endpoint takes no body. */
  readonly takes: ReadonlySet<string>
  /** The media types of a success, none where it has no body. */
  readonly gives: ReadonlySet<string>
}

const sound: Decode = () => []
const whole: Bounded = { overflows: () => false, cut: (value) => value }

const decode = (
  schema: Schema.Constraint | undefined,
  section: string,
  echo: boolean,
  options: SchemaAST.ParseOptions | undefined,
  { cut }: Pick<Bounded, "cut"> = whole,
): Decode => {
  if (schema === undefined) return sound
  // Wire schemas need no services: they are plain data on both sides.
  const run = Schema.decodeUnknownExit(schema as Schema.Codec<unknown, unknown>, {
    ...options,
    errors: "all",
    reportInput: true,
  })
  return (input) => {
    const exit = run(cut(input))
    if (Exit.isSuccess(exit)) return []
    return exit.cause.reasons.flatMap((reason) =>
      reason._tag === "Fail" ? faultsOf(reason.error, section, input, echo) : []
    )
  }
}

const isList = (ast: SchemaAST.AST): boolean => ast._tag === "Arrays" || ast._tag === "Union" && ast.types.some(isList)

const listsOf = (schema: Schema.Top | undefined): ReadonlySet<string> => {
  const ast = schema === undefined ? undefined : Schema.toEncoded(schema).ast
  return new Set(
    ast?._tag === "Objects"
      ? ast.propertySignatures.flatMap((property) => isList(property.type) ? [String(property.name)] : [])
      : [],
  )
}

const filtersOf = (schema: Schema.Top | undefined): ReadonlySet<string> =>
  new Set(
    schema?.ast._tag === "Objects"
      ? schema.ast.propertySignatures.flatMap(({ name, type }) => isListFilter(type.annotations) ? [String(name)] : [])
      : [],
  )

const orderOf = (schema: Schema.Top | undefined): RequestDecoders["inOrder"] => {
  const ast = schema?.ast
  const [only] = ast?._tag === "Union" && ast.types.length === 1 ? ast.types : [ast]
  const names = only?._tag === "Objects" ? only.propertySignatures.map(({ name }) => String(name)) : []
  const fieldIndex = ({ loc }: Fault) => (names.indexOf(String(loc[1])) + 1) || Infinity
  return (faults) =>
    faults.toSorted((a, b) => {
      const [one, other] = [fieldIndex(a), fieldIndex(b)]
      return one === other ? 0 : one - other
    })
}

const mediaTypes = (schema: Schema.Top): ReadonlyArray<string> => {
  const encoding = schema.ast.annotations?.["~httpApiEncoding"] as { readonly contentType?: string } | undefined
  if (encoding?.contentType !== undefined) return [encoding.contentType]
  if ("contentType" in schema && typeof schema.contentType === "string") return [schema.contentType]
  return schema.ast._tag === "Void" ? [] : ["application/json"]
}

/** Of a group its annotations count. */
export type Annotated = Pick<HttpApiGroup.Top, "annotations">

/** The parse options of an endpoint's sections, as HttpApi resolves them. */
export const optionsOf = (endpoint: HttpApiEndpoint.Top, group: Annotated) => {
  const annotations = Context.merge(group.annotations, endpoint.annotations)
  const shared = Context.getOrUndefined(annotations, HttpApi.ParseOptions)
  return {
    params: Context.getOrUndefined(annotations, HttpApi.ParamsParseOptions) ?? shared,
    query: Context.getOrUndefined(annotations, HttpApi.QueryParseOptions) ?? shared,
    headers: Context.getOrUndefined(annotations, HttpApi.HeadersParseOptions) ?? shared,
    payload: Context.getOrUndefined(annotations, HttpApi.PayloadParseOptions) ?? shared,
  }
}

const make = (endpoint: HttpApiEndpoint.Top, group: Annotated): RequestDecoders => {
  const annotations = Context.merge(group.annotations, endpoint.annotations)
  const options = optionsOf(endpoint, group)
  const echo = !Context.get(annotations, SecretRequest)
  const json = endpoint.payload.get("application/json")
  const payload = json === undefined ? undefined : Schema.Union(json.schemas)
  const bounds = payload === undefined ? whole : bounded(payload, options.payload)
  return {
    path: decode(endpoint.params, "path", echo, options.params),
    query: decode(
      endpoint.query === undefined ? undefined : Schema.toCodecArrayFromSingle(endpoint.query),
      "query",
      echo,
      options.query,
    ),
    header: decode(endpoint.headers, "header", false, options.headers),
    body: decode(payload, "body", echo, options.payload, bounds),
    overflows: bounds.overflows,
    echoes: echo,
    lists: listsOf(endpoint.query),
    filters: filtersOf(endpoint.query),
    addresses: Context.get(annotations, CalledAddresses),
    inOrder: orderOf(payload),
    takes: new Set(endpoint.payload.keys()),
    gives: new Set([...endpoint.success].flatMap(mediaTypes)),
  }
}

const cache = new WeakMap<HttpApiEndpoint.Top, RequestDecoders>()

export const sectionsOf = (endpoint: HttpApiEndpoint.Top, group: Annotated): RequestDecoders => {
  const known = cache.get(endpoint)
  if (known) return known
  const sections = make(endpoint, group)
  cache.set(endpoint, sections)
  return sections
}

/** Replaces a filter's text that PostgreSQL cannot store; no row has this text either. */
const nothingMeets = "\uFFFD"

/** The query with one value for each field that takes one: the last, as in FastAPI. */
export const singled = (
  query: Readonly<Record<string, string | Array<string>>>,
  { filters, lists }: RequestDecoders,
) =>
  Object.fromEntries(
    Object.entries(query).map(([key, value]) => {
      const one = Array.isArray(value) && !lists.has(key) ? value.at(-1) ?? "" : value
      return [key, filters.has(key) && typeof one === "string" && unstorable(one) ? nothingMeets : one]
    }),
  )

/**
 * Finds strings that PostgreSQL cannot store and numbers that are not finite, at any depth. The faults do not repeat
 * them.
 */
export const unstorableIn = (value: unknown, section: string): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  const loc: Array<string | number> = [section]
  const found = (complaint: Complaint | undefined) => {
    if (complaint) {
      faults.push({ loc: loc.map((part) => typeof part === "string" ? shortName(part) : part), ...complaint })
    }
    return complaint !== undefined
  }
  /** Adds the faults of one value; true: there are enough. */
  const look = (one: unknown): boolean => {
    if (typeof one === "string") found(unstorable(one))
    else if (typeof one === "number") found(Number.isFinite(one) ? undefined : notFinite)
    else if (Array.isArray(one)) return one.some((item, index) => lookAt(index, item))
    else if (typeof one === "object" && one !== null) {
      for (const key of Object.keys(one)) {
        if (!found(unstorable(key)) && lookAt(key, Reflect.get(one, key))) return true
      }
    }
    return faults.length >= maxFaults
  }
  const lookAt = (key: string | number, one: unknown) => {
    loc.push(key)
    const enough = look(one)
    loc.pop()
    return enough
  }
  look(value)
  return faults
}

/** 422 for a body that is no JSON, as FastAPI writes it. */
export const brokenJson = ({ pos, error }: JsonFault, { echoes }: RequestDecoders): Fault => ({
  type: "json_invalid",
  loc: ["body", pos],
  msg: "JSON decode error",
  ...(echoes ? { input: {} } : {}),
  ctx: { error },
})

/** 422 for a body that is required and was not sent. */
export const missingBody = ({ echoes }: RequestDecoders): Fault => ({
  type: missing.type,
  loc: ["body"],
  msg: missing.msg,
  ...(echoes ? { input: null } : {}),
})
