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
  Internal,
  MalformedRequest,
  NotAcceptable,
  UnsupportedMediaType,
} from "../problems/Floor.ts"
import { HTTPValidationError } from "../Validation.ts"

/** Answers 422 with every fault of all sections; reads the body within its limits. */
export class Floor extends HttpApiMiddleware.Service<Floor>()("bailiwick/schemas/api/Floor", {
  error: [
    HTTPValidationError,
    MalformedRequest,
    NotAcceptable,
    BodyTooLarge,
    UnsupportedMediaType,
    Internal,
    DependencyUnavailable,
  ],
}) {}

/**
 * On an endpoint or group: no value of its requests is repeated in a 422
 * (`HttpApiEndpoint.post(...).annotate(SecretRequest, true)`).
 */
export class SecretRequest
  extends Context.Reference<boolean>("bailiwick/schemas/api/SecretRequest", { defaultValue: () => false }) {}

/**
 * Unknown body fields are refused: `.annotate(HttpApi.PayloadParseOptions, strictBody)` on a group or endpoint. (Not on
 * the api: the floor sees an endpoint and its group only.)
 */
export const strictBody: SchemaAST.ParseOptions = { onExcessProperty: "error" }
