/**
 * The layers of the contract's `RequestValidation` and `PlainFloor`: they read the body, and turn a request that does
 * not decode into a 422 with all of its faults, or into a 400. They run after authentication and before the handler.
 */
import { Effect, Layer, Option, Result, type Types } from "effect"
import { HttpMethod, HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiError, type HttpApiGroup } from "effect/http-api"
import { PlainFloor, RequestValidation } from "../../../schemas/api/RequestValidation.ts"
import { MalformedRequest, NotAcceptable, UnsupportedMediaType } from "../../../schemas/problems/HttpProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { shortInput, toldOf } from "../../../schemas/Validation/Bounds.ts"
import { type Fault, notFinite, valueError } from "../../../schemas/Validation/Fault.ts"
import { parse } from "../../../schemas/Validation/Json.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { accepts, mediaTypeOf } from "./MediaTypes.ts"
import { readText, withText } from "./Body.ts"
import { brokenJson, missingBody, type RequestDecoders, sectionsOf, singled, unstorableIn } from "./RequestDecoders.ts"

interface Body {
  /** The text that the contract's decoder reads instead of the body's bytes. */
  readonly text: string | undefined
  readonly value: unknown
  readonly faults: ReadonlyArray<Fault>
}

const nothing: Body = { text: undefined, value: undefined, faults: [] }

const empty = (sections: RequestDecoders): Body =>
  sections.body({}).length > 0
    ? { text: "", value: undefined, faults: [missingBody(sections)] }
    : { ...nothing, text: "{}" }

const readBody = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, sections: RequestDecoders) {
  if (!HttpMethod.hasBody(request.method) || sections.takes.size === 0) return nothing
  const type = mediaTypeOf(request.headers["content-type"])
  const text = yield* readText(request)
  // An empty body counts as `{}` where no field is required, whatever its content type.
  if (text === "") return empty(sections)
  if (!sections.takes.has(type)) return yield* new UnsupportedMediaType({})
  if (type !== "application/json") return nothing
  const parsed = parse(text)
  if (Result.isFailure(parsed)) return { text, value: undefined, faults: [brokenJson(parsed.failure, sections)] }
  // FastAPI treats `null` as an empty body, too.
  if (parsed.success === null) return empty(sections)
  const faults = unstorableIn(parsed.success, "body")
  // Numbers that are not finite cannot be written as JSON again: only they are reported.
  const endless = faults.filter(({ type }) => type === notFinite.type)
  return endless.length > 0 ? { text, value: undefined, faults: endless } : { text, value: parsed.success, faults }
})

const without = (faults: ReadonlyArray<Fault>, known: ReadonlyArray<Fault>) => {
  if (faults.length === 0) return faults
  const locations = new Set(known.map(({ loc }) => JSON.stringify(loc)))
  return faults.filter(({ loc }) => !locations.has(JSON.stringify(loc)))
}

/** The objection to a user's address, or undefined. */
type Judge = (url: string) => string | undefined

/** The address policy's faults of a body. Text that is no address at all is reported by its schema. */
const misdirectedIn = (body: unknown, { addresses, echoes }: RequestDecoders, judge: Judge): ReadonlyArray<Fault> =>
  addresses(body).flatMap(({ loc, url }) => {
    const message = typeof url === "string" ? judge(url) : undefined
    if (message === undefined) return []
    return [{ loc: ["body", ...loc], ...valueError(message), ...(echoes ? { input: shortInput(url) } : {}) }]
  })

const invalid: ReadonlyArray<Fault> = [{
  loc: ["body"],
  type: "value_error",
  msg: "Value error, the request is not valid",
}]

type Handler = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>

interface Asked {
  readonly endpoint: HttpApiEndpoint.Top
  readonly group: HttpApiGroup.Top
}

/** Makes the middleware; `refusal` turns faults into the failure. */
const validation = <E>(judge: Judge, refusal: (faults: ReadonlyArray<Fault>) => E) =>
  Effect.fnUntraced(function* (handler: Handler, { endpoint, group }: Asked) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { params } = yield* HttpRouter.RouteContext
    const sections = sectionsOf(endpoint, group)
    if (!accepts(request.headers["accept"], sections.gives)) return yield* new NotAcceptable({})
    const query = singled(yield* HttpServerRequest.ParsedSearchParams, sections)
    // The query of an endpoint that reads none is not checked.
    const queryFaults = endpoint.query === undefined ? [] : unstorableIn(query, "query")
    const body = yield* readBody(request, sections)
    const misdirected = misdirectedIn(body.value, sections, judge)

    const refused = (first: ReadonlyArray<Fault>) => {
      const found = [...sections.path(params), ...sections.query(query), ...sections.header(request.headers)]
      const inBody = body.faults.length > 0 && body.value === undefined ? body.faults : sections.body(body.value ?? {})
      const ofBody = misdirected.length === 0 ? inBody : sections.inOrder([...inBody, ...without(misdirected, inBody)])
      const own = [...found, ...without(queryFaults, found), ...ofBody, ...without(body.faults, ofBody)]
      return Effect.fail(refusal(own.length > 0 ? toldOf(own) : first))
    }

    const known = queryFaults.length + body.faults.length + misdirected.length
    if (known > 0 || sections.overflows(body.value)) return yield* refused(invalid)
    return yield* handler.pipe(
      Effect.provideService(HttpServerRequest.ParsedSearchParams, query),
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        body.text === undefined ? request : withText(request, body.text),
      ),
      Effect.catchIf(
        (error: unknown): error is HttpApiError.HttpApiSchemaError =>
          HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders",
        () => refused(invalid),
      ),
    )
  })

/** The most faults and characters in `detail`. */
const most = { faults: 10, characters: 1_000 }

/** `body.delivery.method: Input should be 'a' or 'b'; body.description: …` */
const inWords = (faults: ReadonlyArray<Fault>): string =>
  faults.slice(0, most.faults).map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; ").slice(0, most.characters)

/** Addresses are checked only where the program has `Outbound` to call them with. */
const judged: Effect.Effect<Judge> = Effect.map(
  Effect.serviceOption(Outbound),
  (outbound) => (url) => {
    const checked = Option.isSome(outbound) ? outbound.value.check(url) : undefined
    return checked !== undefined && Result.isFailure(checked) ? checked.failure.message : undefined
  },
)

export const layer = Layer.merge(
  Layer.effect(
    RequestValidation,
    Effect.map(judged, (judge) => validation(judge, (faults) => new HTTPValidationError({ detail: faults }))),
  ),
  Layer.effect(
    PlainFloor,
    Effect.map(judged, (judge) => validation(judge, (faults) => new MalformedRequest({ detail: inWords(faults) }))),
  ),
)
