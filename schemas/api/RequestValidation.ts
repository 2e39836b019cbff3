/**
 * Request validation, of every endpoint of the contract. A group declares it first, so that it runs next to the
 * handler, and authentication, declared after it, runs before any validation:
 * `HttpApiGroup.make("webhooks").add(...).middleware(Floor).middleware(Authorization)`.
 */
import { Context, type SchemaAST } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import {
  BodyTooLarge,
  DependencyUnavailable,
  HeadersTooLarge,
  Internal,
  MalformedRequest,
  MisdirectedRequest,
  NotAcceptable,
  RequestTimeout,
  UnsupportedMediaType,
} from "../problems/HttpProblems.ts"
import { HTTPValidationError } from "../Validation.ts"

const common = [
  MalformedRequest,
  NotAcceptable,
  RequestTimeout,
  BodyTooLarge,
  UnsupportedMediaType,
  MisdirectedRequest,
  HeadersTooLarge,
  Internal,
  DependencyUnavailable,
] as const

/** Answers 422 with every fault of all sections; reads the body within its limits. */
export class RequestValidation
  extends HttpApiMiddleware.Service<RequestValidation>()("bailiwick/schemas/api/RequestValidation", {
    error: [HTTPValidationError, ...common],
  }) {}

/**
 * `RequestValidation` for groups that follow a standard without 422: a request that does not decode is a 400 whose
 * `detail` names the faults, and no value of it is repeated.
 */
export class PlainFloor extends HttpApiMiddleware.Service<PlainFloor>()("bailiwick/schemas/api/PlainFloor", {
  error: common,
}) {}

/**
 * Annotates an endpoint or group: no value of its requests is repeated in a 422
 * (`HttpApiEndpoint.post(...).annotate(SecretRequest, true)`).
 */
export class SecretRequest
  extends Context.Reference<boolean>("bailiwick/schemas/api/SecretRequest", { defaultValue: () => false }) {}

/** The addresses in a body that the program will call, each with its location. */
export type Called = (body: unknown) => ReadonlyArray<{ readonly loc: ReadonlyArray<string>; readonly url: unknown }>

/**
 * Annotates an endpoint: validation checks these addresses by the address policy, and reports them beside all other
 * faults.
 */
export class CalledAddresses
  extends Context.Reference<Called>("bailiwick/schemas/api/CalledAddresses", { defaultValue: () => () => [] }) {}

/**
 * Refuses unknown body fields: `.annotate(HttpApi.PayloadParseOptions, strictBody)` on a group or endpoint. (Not on the
 * api: validation sees only an endpoint and its group.)
 */
export const strictBody: SchemaAST.ParseOptions = { onExcessProperty: "error" }
