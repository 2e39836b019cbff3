/**
 * The floor under every endpoint of the contract. A group declares it first, so that it stands nearest to the handler
 * and authentication, declared after it, runs before any validation:
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
  UnsupportedMediaType,
} from "../problems/Floor.ts"
import { HTTPValidationError } from "../Validation.ts"

const anyhow = [
  MalformedRequest,
  NotAcceptable,
  BodyTooLarge,
  UnsupportedMediaType,
  MisdirectedRequest,
  HeadersTooLarge,
  Internal,
  DependencyUnavailable,
] as const

/** Answers 422 with every fault of all sections; reads the body within its limits. */
export class Floor extends HttpApiMiddleware.Service<Floor>()("bailiwick/schemas/api/Floor", {
  error: [HTTPValidationError, ...anyhow],
}) {}

/**
 * The same for groups that another standard describes, which knows no 422: a request that does not decode is a 400, its
 * faults are told in `detail`, and no value of it is repeated.
 */
export class PlainFloor extends HttpApiMiddleware.Service<PlainFloor>()("bailiwick/schemas/api/PlainFloor", {
  error: anyhow,
}) {}

/**
 * On an endpoint or group: no value of its requests is repeated in a 422
 * (`HttpApiEndpoint.post(...).annotate(SecretRequest, true)`).
 */
export class SecretRequest
  extends Context.Reference<boolean>("bailiwick/schemas/api/SecretRequest", { defaultValue: () => false }) {}

/** The addresses in a body that the program will call, each with its place. */
export type Called = (body: unknown) => ReadonlyArray<{ readonly loc: ReadonlyArray<string>; readonly url: unknown }>

/** On an endpoint: the floor judges these by the address policy, and tells what is wrong with them beside all other faults. */
export class CalledAddresses
  extends Context.Reference<Called>("bailiwick/schemas/api/CalledAddresses", { defaultValue: () => () => [] }) {}

/**
 * Unknown body fields are refused: `.annotate(HttpApi.PayloadParseOptions, strictBody)` on a group or endpoint. (Not on
 * the api: the floor sees an endpoint and its group only.)
 */
export const strictBody: SchemaAST.ParseOptions = { onExcessProperty: "error" }
