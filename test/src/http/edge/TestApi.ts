/** A small contract that exercises every part of the HTTP edge. */
import { Deferred, Effect, Layer, Schema, Stream } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { SqlError } from "effect/sql"
import { RequestValidation, SecretRequest, strictBody } from "../../../../schemas/api/RequestValidation.ts"
import { InvalidCredentials, NotFound, RateLimited } from "../../../../schemas/problems/HttpProblems.ts"
import { BodyBoolean, BodyInt, QueryBoolean, QueryInt, Text } from "../../../../schemas/Validation/Scalars.ts"
import { Uuid } from "../../../../schemas/Wire.ts"
import { CurrentRequest } from "../../../../services/platform/observability/CurrentRequest.ts"
import { actsAs } from "../../../../src/http/edge/RequestActor.ts"

const Thing = Schema.Struct({
  name: Text(2, 5),
  tags: Schema.Array(Schema.Literals(["a", "b", "c"])).check(Schema.isMinLength(1)),
  size: BodyInt({ min: 1, max: 10 }),
  on: BodyBoolean,
  note: Schema.optionalKey(Schema.NullOr(Schema.String)),
})

class Things extends HttpApiGroup.make("things").add(
  HttpApiEndpoint.get("list", "/things", {
    query: { limit: Schema.optionalKey(QueryInt({ min: 1, max: 100 })), all: Schema.optionalKey(QueryBoolean) },
    success: Schema.Struct({ limit: Schema.NullOr(Schema.Int), all: Schema.NullOr(Schema.Boolean) }),
  }),
  HttpApiEndpoint.post("create", "/things/:id", {
    params: { id: Uuid },
    query: { limit: QueryInt({ min: 1 }) },
    headers: { "x-key": Schema.String.check(Schema.isMinCodePoints(8)) },
    payload: Thing,
    success: Schema.Struct({ name: Schema.String, size: Schema.Int, on: Schema.Boolean }).pipe(
      HttpApiSchema.status(201),
    ),
    error: [NotFound],
  }),
  HttpApiEndpoint.post("strict", "/strict", {
    payload: Schema.Struct({ name: Schema.String }),
    success: Schema.Struct({ name: Schema.String }),
  }).annotate(HttpApi.PayloadParseOptions, strictBody),
  HttpApiEndpoint.post("named", "/named", {
    payload: Schema.Struct({ name: Schema.String }).annotate({ identifier: "Named" }),
    success: HttpApiSchema.NoContent,
  }),
  HttpApiEndpoint.post("secret", "/secret", {
    payload: Schema.Struct({ code: Schema.String.check(Schema.isPattern(/^[0-9]{6}$/u)) }),
    success: HttpApiSchema.NoContent,
  }).annotate(SecretRequest, true),
  HttpApiEndpoint.post("optional", "/optional", {
    payload: Schema.Struct({ name: Schema.optionalKey(Schema.String) }),
    success: Schema.Struct({ name: Schema.NullOr(Schema.String) }),
  }),
  HttpApiEndpoint.get("token", "/things/:id/tokens/:token", {
    params: { id: Schema.String, token: Schema.String },
    success: HttpApiSchema.NoContent,
    error: [NotFound],
  }),
  HttpApiEndpoint.get("current", "/current", {
    success: Schema.Struct({ requestId: Schema.NullOr(Schema.String), route: Schema.NullOr(Schema.String) }),
  }),
  HttpApiEndpoint.get("defect", "/defect", { success: HttpApiSchema.NoContent }),
  HttpApiEndpoint.get("away", "/away", { success: HttpApiSchema.NoContent }),
  HttpApiEndpoint.get("who", "/who", { success: HttpApiSchema.NoContent, error: [InvalidCredentials] }),
  HttpApiEndpoint.get("limited", "/limited", { success: HttpApiSchema.NoContent, error: [RateLimited] }),
  HttpApiEndpoint.get("never", "/never", { success: HttpApiSchema.NoContent }),
  HttpApiEndpoint.post("slow", "/slow", { success: HttpApiSchema.NoContent }),
).middleware(RequestValidation) {}

export class TestApi extends HttpApi.make("test").add(Things).prefix("/v1") {}

/** Signals between a test and the slow handler. */
export interface Slow {
  readonly started: Deferred.Deferred<void>
  readonly proceed: Deferred.Deferred<void>
  readonly done: Deferred.Deferred<void>
}

const handlers = ({ started, proceed, done }: Slow) =>
  HttpApiBuilder.group(TestApi, "things", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => Effect.succeed({ limit: query.limit ?? null, all: query.all ?? null }),
      create: ({ payload }) => Effect.succeed(payload),
      strict: ({ payload }) => Effect.succeed(payload),
      named: () => Effect.void,
      secret: () => Effect.void,
      optional: ({ payload }) => Effect.succeed({ name: payload.name ?? null }),
      token: () => Effect.andThen(actsAs("account:me"), Effect.fail(new NotFound({}))),
      current: () => Effect.map(CurrentRequest, ({ requestId, route }) => ({ requestId, route })),
      defect: () => Effect.die(new Error("secret detail")),
      away: () =>
        Effect.die(
          new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("refused") }) }),
        ),
      who: () => Effect.fail(new InvalidCredentials({})),
      limited: () => Effect.fail(new RateLimited({ retry_after: 7, limit: 5, window_seconds: 60 })),
      never: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never),
      slow: () =>
        Deferred.succeed(started, undefined).pipe(
          Effect.andThen(Deferred.await(proceed)),
          Effect.andThen(Deferred.succeed(done, undefined)),
          Effect.asVoid,
        ),
    }))

/** A stream that sends one word and stays open. */
const stream = HttpRouter.add(
  "GET",
  "/v1/stream",
  HttpServerResponse.stream(Stream.concat(Stream.succeed(new TextEncoder().encode("word\n")), Stream.never)),
)

export const routes = (slow: Slow) =>
  Layer.merge(HttpApiBuilder.layer(TestApi).pipe(Layer.provide(handlers(slow))), stream)
