/** `/v1/console`: what the web console asks before it shows anything. No credential, or a session of the console. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ConsoleSession } from "../identity/ConsoleSession.ts"
import { NotFound } from "../problems/HttpProblems.ts"
import { RequestValidation } from "./RequestValidation.ts"

export class ConsoleApi extends HttpApiGroup.make("console")
  .add(
    HttpApiEndpoint.get("consoleSession", "/v1/console/session", { success: ConsoleSession, error: NotFound })
      .annotate(
        OpenApi.Summary,
        "Read the console's session: its visitor, and what it may show; 404 where there is no console",
      ),
  )
  .middleware(RequestValidation)
  .annotateMerge(OpenApi.annotations({ title: "Console", description: "The web console's own session." })) {}
