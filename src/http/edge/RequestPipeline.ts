/**
 * The pipeline around every request: its id, the Host check, limits, a route or its refusal, an answer for every
 * failure, the audit of failures, and the headers of all answers.
 *
 * A request that may change data runs to its end even where its client disconnects. Reads are interrupted.
 */
import { ByteSize, Context, Effect, Fiber, Option, Scope, Stream } from "effect"
import {
  HttpBody,
  HttpIncomingMessage,
  HttpMiddleware,
  HttpServerRequest,
  HttpServerResponse,
  HttpTraceContext,
} from "effect/http"
import {
  BodyTooLarge,
  DependencyUnavailable,
  HeadersTooLarge,
  MethodNotAllowed,
  MisdirectedRequest,
  NotFound,
  UnsupportedMediaType,
} from "../../../schemas/problems/HttpProblems.ts"
import { VersionFence } from "../../../services/platform/database/VersionFence.ts"
import { prefixOf } from "../../../services/people/SessionActivity.ts"
import { CurrentRequest, ofClient } from "../../../services/platform/observability/CurrentRequest.ts"
import { Ids } from "../../../services/platform/Ids.ts"
import { maxBody, stopping as stoppingDetail } from "./Body.ts"
import { Clients } from "./Clients.ts"
import { maxHeaders } from "./Details.ts"
import { completed, headed, problemIn } from "./ProblemResponse.ts"
import type { FastRead } from "./FastReads.ts"
import { answer, dressed, respond } from "./ErrorMapping.ts"
import { mediaTypeOf } from "./MediaTypes.ts"
import { RefusedCredentials } from "./RefusedCredentials.ts"
import { RejectionAudit } from "./RejectionAudit.ts"
import { accepted, RequestActor } from "./RequestActor.ts"
import { RequestMetrics } from "./RequestMetrics.ts"
import { RequestOutcome } from "./RequestOutcome.ts"
import { instanceOf, type Matched, type Routes } from "./Routes.ts"

export interface EdgeOptions {
  readonly routes: Routes
  /** Fast reads by route template. */
  readonly fastReads: ReadonlyMap<string, FastRead>
  /** Fibers of requests in flight; a stopping server interrupts those that take too long. */
  readonly running: Set<Fiber.Fiber<unknown, unknown>>
  /** Completes when the server begins to stop: streams end then. */
  readonly stopping: Effect.Effect<void>
  /** Whether the server has begun to stop. */
  readonly stops: () => boolean
}

type Handled = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

/** Characters of a path: more than any path with an id of ours or a token has, even percent-encoded. */
const maxPath = 1_024

const wellFormedId = /^[A-Za-z0-9._-]{1,128}$/

/** Codes that refuse the credential itself, not what its bearer may do. */
const refusedCodes = new Set(["invalid_credentials", "invalid_token"])

const isApi = (matched: Matched | undefined) => matched?.template.startsWith("/v1/") ?? false

/** Probes may use any Host header, and learn nothing. */
const probes = new Set(["/health", "/ready"])

/**
 * The address of a page of the console whose percent signs are no escapes (`%zz`), with each sign escaped, so that the
 * console itself answers; null for any other address. The router finds no route for such a path.
 */
const spelledOut = (url: string): string | null => {
  const [path = "", ...query] = url.split("?")
  if (!path.startsWith("/console/")) return null
  try {
    decodeURIComponent(path)
    return null
  } catch {
    return [path.replaceAll("%", "%25"), ...query].join("?")
  }
}

const headerBytes = (request: HttpServerRequest.HttpServerRequest) =>
  Object.entries(request.headers).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length + 4,
    request.method.length + request.url.length + 11,
  )

const credentialOf = (request: HttpServerRequest.HttpServerRequest): string => {
  const { authorization, cookie } = request.headers
  if (authorization === undefined) {
    return cookie?.includes("bailiwick_console=") ? "console" : cookie?.includes("mail_session=") ? "cookie" : "none"
  }
  return /^Bearer +(mail_k_[0-9A-Za-z]{8})/i.exec(authorization)?.[1] ?? "token"
}

const hasBody = (request: HttpServerRequest.HttpServerRequest) =>
  Number(request.headers["content-length"] ?? 0) > 0 || request.headers["transfer-encoding"] !== undefined

/** The refusals that need no handler, in the order of docs/api/mail.md. */
const refusalOf = (
  request: HttpServerRequest.HttpServerRequest,
  matched: Matched | undefined,
  isOurs: (host: string | undefined) => boolean,
  routes: Routes,
) => {
  if (!isOurs(request.headers["host"]) && !probes.has(matched?.template ?? "")) return new MisdirectedRequest({})
  if (matched === undefined) return routes.methods(request.url).length > 0 ? new MethodNotAllowed({}) : new NotFound({})
  // No id of ours contains U+0000 or is this long: a column would refuse the former, an index the latter.
  const path = request.url.split("?", 1)[0]!
  if (path.length > maxPath || path.includes("%00")) return new NotFound({})
  if (Number(request.headers["content-length"] ?? 0) > maxBody) return new BodyTooLarge({})
  if (headerBytes(request) > maxHeaders) return new HeadersTooLarge({})
  if (
    matched.template.startsWith("/v1/") && hasBody(request) &&
    mediaTypeOf(request.headers["content-type"]) !== "application/json"
  ) return new UnsupportedMediaType({})
  return undefined
}

const tracked = <A, E, R>(
  fiber: Fiber.Fiber<unknown, unknown>,
  running: EdgeOptions["running"],
  effect: Effect.Effect<A, E, R>,
) => {
  running.add(fiber)
  return Effect.ensuring(effect, Effect.sync(() => running.delete(fiber)))
}

const toTheEnd = (handled: Handled, running: EdgeOptions["running"]): Handled =>
  Effect.uninterruptible(Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.interruptible(handled), { startImmediately: true })
    return yield* tracked(fiber, running, Fiber.join(fiber))
  }))

const whileWanted = (handled: Handled, running: EdgeOptions["running"]): Handled =>
  Effect.withFiber((fiber) => tracked(fiber, running, handled))

const ending = (response: HttpServerResponse.HttpServerResponse, stopping: Effect.Effect<void>) =>
  response.body._tag === "Stream"
    ? HttpServerResponse.setBody(
      response,
      HttpBody.stream(
        Stream.interruptWhen(response.body.stream, stopping),
        response.body.contentType,
        response.body.contentLength,
      ),
    )
    : response

/** The answer on kept connections once the server has begun to stop. */
const away = respond(new DependencyUnavailable({ detail: stoppingDetail }))

/** The answer to commands while the schema refuses this program: a process of a newer version takes them. */
const leftBehind = (detail: string) =>
  Effect.map(respond(new DependencyUnavailable({ detail })), HttpServerResponse.setHeader("retry-after", "5"))

const isRead = (method: string) => method === "GET" || method === "HEAD"

/** Wraps a router's app; `isOurs` decides whether a Host header is one of ours. */
export const make = Effect.fnUntraced(function* ({ fastReads, routes, running, stopping, stops }: EdgeOptions) {
  const refusals = yield* RejectionAudit
  const refused = yield* RefusedCredentials
  const fence = yield* VersionFence
  const begin = yield* RequestMetrics
  const { addressOf } = yield* Clients

  const allow = (request: HttpServerRequest.HttpServerRequest) => [...routes.methods(request.url), "OPTIONS"].join(", ")

  const handle = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    matched: Matched | undefined,
    app: Handled,
    isOurs: (host: string | undefined) => boolean,
  ) {
    if (stops()) return yield* away
    const refusal = refusalOf(request, matched, isOurs, routes)
    if (refusal instanceof MethodNotAllowed) {
      return request.method === "OPTIONS"
        ? HttpServerResponse.empty({ status: 204, headers: { allow: allow(request) } })
        : HttpServerResponse.setHeader(yield* respond(refusal), "allow", allow(request))
    }
    const page = refusal instanceof NotFound && isRead(request.method) ? spelledOut(request.url) : null
    if (page !== null) return HttpServerResponse.redirect(page, { status: 303 })
    if (refusal !== undefined) return yield* respond(refusal)
    const behind = isRead(request.method) ? null : yield* fence.refusal
    if (behind !== null) return yield* leftBehind(behind)
    if (isApi(matched)) {
      const beyond = yield* refused.refusal(request)
      if (beyond !== undefined) return yield* respond(beyond)
    }
    const fast = matched !== undefined && request.method === "GET"
      ? fastReads.get(matched.template)?.(request, matched)
      : undefined
    const handled = fast === undefined ? app : Effect.flatMap(
      fast,
      (found) => found === undefined ? app : Effect.as(accepted, found),
    )
    return yield* (isRead(request.method) ? whileWanted(handled, running) : toTheEnd(handled, running)).pipe(
      Effect.catchCause(Effect.fnUntraced(function* (cause) {
        const { response, cause: unexpected } = yield* answer(cause)
        if (unexpected) yield* Effect.logError("request failed", unexpected)
        return response
      })),
      Effect.flatMap(dressed),
    )
  })

  const finish = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    matched: Matched | undefined,
    { auditedAs, requestId }: { readonly requestId: string; readonly auditedAs: string },
    { accepted, actor }: (typeof RequestActor)["Service"],
    refusedAs: string | null,
    response: HttpServerResponse.HttpServerResponse,
  ) {
    if (accepted) refused.accepted(request)
    if (response.status < 400) return headed(ending(response, stopping), requestId, stops())
    const problem = problemIn(response)
    const code = typeof problem?.["code"] === "string"
      ? problem["code"]
      : refusedAs ?? (response.status === 422 ? "validation_error" : "failed")
    if (isApi(matched) && refusedCodes.has(code)) yield* refused.refused(request)
    const auditId = yield* refusals.record({
      requestId: auditedAs,
      route: matched?.template ?? null,
      status: response.status,
      code,
      actor,
      credential: credentialOf(request),
      network: prefixOf(addressOf(request)),
    })
    const occurrence = { instance: instanceOf(matched), requestId, auditId }
    // A body that was given up is not read on: its connection is closed.
    const last = stops() || response.status === 408
    const complete = problem ? completed(response, problem, occurrence) : response
    const again = stops() && response.status === 503
    return headed(again ? HttpServerResponse.setHeader(complete, "retry-after", "1") : complete, requestId, last)
  })

  return (app: Handled, isOurs: (host: string | undefined) => boolean): Handled =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const inbound = request.headers["x-request-id"]
      const chosen = inbound !== undefined && wellFormedId.test(inbound)
      const requestId = chosen ? inbound : yield* (yield* Ids).next
      const auditedAs = chosen ? ofClient(requestId) : requestId
      const matched = routes.find(request.method, request.url)
      const route = matched?.template ?? null
      const measured = begin?.(request.method, route)
      const current = { actor: null as string | null, accepted: false, charged: null as string | null }
      const outcome = { code: null as string | null }
      const context = Context.make(CurrentRequest, { requestId: auditedAs, route }).pipe(
        Context.add(RequestActor, current),
        Context.add(RequestOutcome, outcome),
      )
      return yield* handle(request, matched, app, isOurs).pipe(
        Effect.provideContext(context),
        Effect.flatMap((response) =>
          finish(
            request,
            matched ?? routes.known(request.url),
            { requestId, auditedAs },
            current,
            outcome.code,
            response,
          )
        ),
        Effect.tap((response) => {
          measured?.(response.status)
          return Effect.annotateCurrentSpan("http.response.status_code", response.status)
        }),
        Effect.annotateLogs({ request_id: auditedAs, route }),
        Effect.withSpan(`${request.method} ${route ?? "unknown"}`, {
          kind: "server",
          attributes: { "http.request.method": request.method, "http.route": route ?? "unknown" },
          ...Option.match(HttpTraceContext.fromHeaders(request.headers), {
            onNone: () => ({ root: true }),
            onSome: (parent) => ({ parent }),
          }),
          // Costs time at each request, and would always show this line.
        }, { captureStackTrace: false }),
      )
    })
})

/**
 * The context of every request's fiber. Effect's own tracing records whole paths, which may hold tokens, and so is off:
 * ours records the template. The body's limit also holds for handlers that read the body themselves.
 */
export const defaults = Context.make(HttpMiddleware.TracerDisabledWhen, () => true).pipe(
  Context.add(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxBody)),
)
