/** The whole contract, one OpenAPI document. */
import { HttpApi, OpenApi } from "effect/http-api"
import { ApiKeysApi } from "./ApiKeys.ts"
import { NotificationsApi } from "./Notifications.ts"
import { SystemApi } from "./System.ts"
import { WebhooksApi } from "./Webhooks.ts"

/** The version that the specification gives the machine-readable description. */
export const apiVersion = "0.2.0"

export class Api extends HttpApi.make("bailiwick").add(SystemApi, ApiKeysApi, WebhooksApi, NotificationsApi)
  .annotateMerge(OpenApi.annotations({ title: "Bailiwick", version: apiVersion })) {}
