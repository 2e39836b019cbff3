/** `/v1/api-keys/`: keys for programmatic access (docs/api/mail.md). */
import { Effect, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { ApiKeyName, ApiKeyPathId, ApiKeyView, CreatedApiKey, Permission } from "../mail/ApiKey.ts"
import { ApiKeyLimit, ApiKeyNotFound } from "../problems/AccountProblems.ts"
import { InvalidCredentials } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { Authenticated, Presented } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

export const NewApiKey = Schema.Struct({
  name: ApiKeyName,
  /** Repeats collapse. */
  permissions: Schema.Array(Permission).check(Schema.isMinLength(1), Schema.isMaxLength(100))
    .annotate({ default: ["send"] }).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed<ReadonlyArray<Permission>>(["send"])),
    ),
}).annotate({ identifier: "NewApiKey" })

export class ApiKeysApi extends HttpApiGroup.make("api-keys")
  .add(
    HttpApiEndpoint.post("createApiKey", "/v1/api-keys/", {
      payload: NewApiKey,
      headers: optionallyKeyed,
      success: CreatedApiKey.pipe(HttpApiSchema.status(201)),
      error: [ApiKeyLimit, InvalidCredentials, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Create an API key; its secret is in this answer and nowhere else"),
    HttpApiEndpoint.get("listApiKeys", "/v1/api-keys/", {
      success: Schema.Array(ApiKeyView),
      error: InvalidCredentials,
    }).middleware(RequestValidation).middleware(Presented)
      .annotate(OpenApi.Summary, "List the active API keys, newest first"),
    HttpApiEndpoint.delete("revokeApiKey", "/v1/api-keys/:key_id", {
      params: { key_id: ApiKeyPathId },
      success: HttpApiSchema.NoContent,
      error: ApiKeyNotFound,
    }).middleware(RequestValidation).middleware(Authenticated)
      .annotate(OpenApi.Summary, "Revoke an API key for good"),
  )
  .annotateMerge(OpenApi.annotations({ title: "API keys", description: "Keys for programmatic access." })) {}
