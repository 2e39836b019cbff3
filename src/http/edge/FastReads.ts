/**
 * Fast paths for frequent GETs, by route template. A fast read skips the router, the layers of the contract's middleware
 * and HttpApi's handler, which cost about as much as the read itself, but runs inside the HTTP edge like every request.
 *
 * It is made from its endpoint: the template, the media types and the decoders of path and query are the contract's,
 * compiled once at start. A request that does not decode, or has a query parameter that the endpoint does not declare,
 * takes the ordinary path, which answers its faults.
 */
import { Context, Effect, Option, Schema, type SchemaAST } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import type { DependencyUnavailable, InvalidCredentials, RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import type { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { accepts } from "./MediaTypes.ts"
import { type Annotated, optionsOf, sectionsOf, singled, unstorableIn } from "./RequestDecoders.ts"
import { type Matched, templateOf } from "./Routes.ts"

type Refusal = InvalidCredentials | InvalidToken | RateLimited | DependencyUnavailable

/** Answers a request, or gives undefined: the request takes the ordinary path. */
export type FastRead = (
  request: HttpServerRequest.HttpServerRequest,
  matched: Matched,
) => Effect.Effect<HttpServerResponse.HttpServerResponse | undefined, Refusal>

export class FastReads
  extends Context.Reference<Map<string, FastRead>>("bailiwick/http/edge/FastReads", { defaultValue: () => new Map() }) {
}

/** A request with an Authorization header, whose credential is not checked yet. */
export interface Presenting {
  readonly request: HttpServerRequest.HttpServerRequest
  readonly authorization: string
}

/** The same, with its path and query as the decoders of its endpoint read them. */
export interface FastRequest<E extends HttpApiEndpoint.ConstraintRequest> extends Presenting {
  readonly params: E["~Params"]["Type"]
  readonly query: E["~Query"]["Type"]
}

type Decode = (input: Readonly<Record<string, unknown>>) => Option.Option<unknown>

/** Decodes a section. One that the endpoint does not declare has to be empty. */
const decoder = (schema: Schema.Top | undefined, options: SchemaAST.ParseOptions | undefined): Decode =>
  schema === undefined
    ? (input) => Object.keys(input).length === 0 ? Option.some({}) : Option.none()
    // Wire schemas need no services: they are plain data on both sides.
    : Schema.decodeUnknownOption(schema as Schema.Codec<unknown, unknown>, { ...options, onExcessProperty: "error" })

/**
 * Compiles the reader of an endpoint's requests. It gives undefined for a request without an Authorization header, one
 * that accepts no answer of the endpoint, and one whose path or query does not decode.
 */
export const readerOf = <E extends HttpApiEndpoint.Top>(group: Annotated, endpoint: E) => {
  const sections = sectionsOf(endpoint, group)
  const options = optionsOf(endpoint, group)
  const paramsOf = decoder(endpoint.params, options.params)
  const queryOf = decoder(endpoint.query && Schema.toCodecArrayFromSingle(endpoint.query), options.query)
  return (request: HttpServerRequest.HttpServerRequest, matched: Matched): FastRequest<E> | undefined => {
    const { accept, authorization } = request.headers
    if (authorization === undefined || !accepts(accept, sections.gives)) return undefined
    const sent = singled(matched.query, sections)
    if (unstorableIn(sent, "query").length > 0) return undefined
    const params = paramsOf(matched.params)
    const query = queryOf(sent)
    return Option.isSome(params) && Option.isSome(query)
      ? { request, authorization, params: params.value, query: query.value }
      : undefined
  }
}

/**
 * Adds the fast read of an endpoint that answers with JSON text. `answer` checks the credential and applies the limits;
 * it gives the text, or undefined where the ordinary path has to answer.
 */
export const addFastRead = Effect.fnUntraced(function* <E extends HttpApiEndpoint.Top>(
  group: Annotated,
  endpoint: E,
  answer: (asked: FastRequest<E>) => Effect.Effect<string | undefined, Refusal>,
) {
  const fastReads = yield* FastReads
  const read = readerOf(group, endpoint)
  fastReads.set(templateOf(endpoint.path), (request, matched) => {
    const asked = read(request, matched)
    if (asked === undefined) return Effect.succeed(undefined)
    return Effect.map(
      answer(asked),
      (body) => body === undefined ? undefined : HttpServerResponse.text(body, { contentType: "application/json" }),
    )
  })
})
