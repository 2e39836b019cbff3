/** `/health` and `/ready` (docs/api/identity.md). No credential. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Timestamp } from "../Wire.ts"
import { RequestValidation } from "./RequestValidation.ts"

export const Health = Schema.Struct({
  status: Schema.Literal("live"),
  version: Schema.String,
  started_at: Timestamp,
}).annotate({ identifier: "Health" })

const Check = Schema.Literals(["ok", "fail"])
/** A note changes no status. */
const note = Schema.optionalKey(Schema.String)
const checks = Schema.Struct({ database: Check, schema: Check, event_bus: Check }).annotate({
  identifier: "ReadinessChecks",
})

/** `degraded` is still 200: without the broker commands succeed, and the outbox keeps their messages. */
export const Ready = Schema.Struct({ status: Schema.Literals(["ready", "degraded"]), checks, note })
  .annotate({ identifier: "Ready" })

export const NotReady = Schema.Struct({ status: Schema.Literal("not_ready"), checks, note })
  .annotate({ identifier: "NotReady" })

/** Adds `NotReady` to the document's 503, which otherwise shows only the common problem. */
const notReady: (typeof OpenApi.Transform)["Service"] = (operation) => {
  const answer = operation["responses"]["503"]
  const content = { ...answer.content, "application/json": { schema: { $ref: "#/components/schemas/NotReady" } } }
  return { ...operation, responses: { ...operation["responses"], 503: { ...answer, content } } }
}

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health })
      .annotate(OpenApi.Summary, "Whether the process is live"),
    HttpApiEndpoint.get("ready", "/ready", { success: [Ready, NotReady.pipe(HttpApiSchema.status(503))] })
      .annotate(OpenApi.Summary, "Whether it can serve: database, schema, event bus")
      .annotate(OpenApi.Transform, notReady),
  )
  .middleware(RequestValidation)
  .annotateMerge(OpenApi.annotations({ title: "System", description: "Probes." })) {}
