/**
 * The API by which products follow a project's lifecycle (docs/api/identity.md): events from a cursor, a signed
 * snapshot, and acknowledgements of what the product has committed. For services with an approved grant, which each
 * request checks again.
 */
import { Context, Effect, Schema } from "effect"
import {
  HttpApi,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi,
} from "effect/http-api"
import { ProjectId } from "../BrandedIds.ts"
import { Acknowledged, CursorAcknowledgement, LifecycleEvents } from "../identity/ConsumptionBodies.ts"
import { Cursor } from "../identity/Cursor.ts"
import { DependencyUnavailable, NotFound, RateLimited } from "../problems/HttpProblems.ts"
import * as Problems from "../problems/IdentityProblems.ts"
import { RequestValidation, strictBody } from "./RequestValidation.ts"

/** The calling service: the issuer and client of its token. */
export class Consumer extends Context.Service<Consumer, { readonly issuer: string; readonly clientId: string }>()(
  "bailiwick/schemas/api/LifecycleApi/Consumer",
) {}

/**
 * Annotates an endpoint that clients call whenever there is something to take, though it is a POST: it counts neither
 * as a write nor as one of the reads that it follows.
 */
export class Follows
  extends Context.Reference<boolean>("bailiwick/schemas/api/LifecycleApi/Follows", { defaultValue: () => false }) {}

/** Checks the token first, then the principal's limits, which are those of the identity API; validation follows. */
export class Consuming extends HttpApiMiddleware.Service<Consuming, { provides: Consumer }>()(
  "bailiwick/schemas/api/LifecycleApi/Consuming",
  {
    security: {
      lifecycle: HttpApiSecurity.bearer.pipe(
        HttpApiSecurity.annotate(
          OpenApi.Description,
          "An access token (RFC 9068) of a configured issuer for the audience `service-lifecycle`.",
        ),
      ),
    },
    error: [Problems.InvalidToken, RateLimited, DependencyUnavailable],
  },
) {}

const project = { project_id: ProjectId }
const granted = [NotFound, Problems.RoleRequired] as const
const placed = [Problems.CursorEpochChanged, Problems.CursorAhead] as const
const from = (pattern: RegExp, otherwise: string) =>
  Schema.String.check(Schema.isPattern(pattern)).annotate({ default: otherwise }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(otherwise)),
  )

export class LifecycleApi extends HttpApiGroup.make("lifecycle")
  .add(
    HttpApiEndpoint.get("lifecycleEvents", "/v1/projects/:project_id/lifecycle/events", {
      params: project,
      query: {
        /** The cursor of the last page; by default the beginning. */
        after: Schema.optionalKey(Cursor),
        limit: from(/^([1-9][0-9]{0,2}|1000)$/u, "100"),
        /** Seconds to wait for an event where there is none yet. */
        wait: from(/^([0-9]|[12][0-9]|30)$/u, "0"),
      },
      success: LifecycleEvents,
      error: [...granted, ...placed, Problems.CursorExpired],
    }).annotate(OpenApi.Summary, "Signed events in the order of positions, after a cursor"),
    HttpApiEndpoint.get("lifecycleSnapshot", "/v1/projects/:project_id/lifecycle/snapshot", {
      params: project,
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/jwt" })),
      error: [...granted, Problems.Held],
    }).annotate(OpenApi.Summary, "The state after all events up to its cursor, signed, or the list of its parts"),
    HttpApiEndpoint.get("lifecycleSnapshotPart", "/v1/projects/:project_id/lifecycle/snapshot/parts/:digest", {
      params: { ...project, digest: Schema.String },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/octet-stream" })),
      error: [...granted, Problems.CursorExpired],
    }).annotate(
      OpenApi.Summary,
      "A piece of a large state's canonical JSON, for a day after the last snapshot that named it",
    ),
    HttpApiEndpoint.post("acknowledgeLifecycle", "/v1/projects/:project_id/lifecycle/acknowledgements", {
      params: project,
      payload: CursorAcknowledgement,
      success: Acknowledged,
      error: [
        ...granted,
        ...placed,
        Problems.CursorExpired,
        Problems.InstalledVersionMismatch,
        Problems.ChainMismatch,
      ],
    }).annotate(OpenApi.Summary, "What the product has committed, with its installed version and the chain's head")
      .annotate(Follows, true),
  )
  .middleware(RequestValidation)
  .middleware(Consuming)
  .annotate(HttpApi.PayloadParseOptions, strictBody)
  .annotateMerge(
    OpenApi.annotations({ title: "Lifecycle", description: "A project's lifecycle, for its products." }),
  ) {}

const Jwks = Schema.Struct({ keys: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
  .annotate({ identifier: "JwkSet" })

export class LifecycleKeysApi extends HttpApiGroup.make("lifecycle-keys")
  .add(
    HttpApiEndpoint.get("lifecycleKeys", "/v1/lifecycle/jwks", { success: Jwks })
      .annotate(OpenApi.Summary, "The public keys of lifecycle messages; those of OIDC are elsewhere"),
  )
  .middleware(RequestValidation)
  .annotateMerge(OpenApi.annotations({ title: "Lifecycle keys", description: "Public keys." })) {}
