/**
 * `/v1/console`: what the web console asks before it shows anything, by no credential or a session of the console; and
 * links that show an account's webhooks in a frame of another page.
 */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ConsoleSession } from "../identity/ConsoleSession.ts"
import { optionallyKeyed } from "../identity/IdempotencyKey.ts"
import { EmbedLink, EmbedSession, NewEmbedLink, NewEmbedSession } from "../mail/EmbedLink.ts"
import { CsrfRejected, Forbidden, InvalidCredentials, NotFound } from "../problems/HttpProblems.ts"
import { receiptProblems } from "../problems/IdempotencyProblems.ts"
import { Authenticated } from "./CredentialsApi.ts"
import { RequestValidation } from "./RequestValidation.ts"

export class ConsoleApi extends HttpApiGroup.make("console")
  .add(
    HttpApiEndpoint.get("consoleSession", "/v1/console/session", { success: ConsoleSession, error: NotFound })
      .middleware(RequestValidation)
      .annotate(
        OpenApi.Summary,
        "Read the console's session: its visitor, and what it may show; 404 where there is no console",
      ),
    HttpApiEndpoint.post("createEmbedLink", "/v1/console/embed-links", {
      payload: NewEmbedLink,
      headers: optionallyKeyed,
      success: EmbedLink.pipe(HttpApiSchema.status(201)),
      error: [Forbidden, NotFound, ...receiptProblems],
    }).middleware(RequestValidation).middleware(Authenticated).annotate(
      OpenApi.Summary,
      "Make a link that shows your webhooks in a frame, once; by an API key, 404 where EMBED_ORIGINS is not set",
    ),
    HttpApiEndpoint.post("openEmbedSession", "/v1/console/embed-sessions", {
      payload: NewEmbedSession,
      success: EmbedSession.pipe(HttpApiSchema.status(201)),
      error: [InvalidCredentials, CsrfRejected, NotFound],
    }).middleware(RequestValidation).annotate(
      OpenApi.Summary,
      "Exchange an embed link's token for a session of an hour; the frame's own script asks it",
    ),
  )
  .annotateMerge(OpenApi.annotations({ title: "Console", description: "The web console's own session." })) {}
