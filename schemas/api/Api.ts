/** The whole contract, one OpenAPI document. */
import { HttpApi, OpenApi } from "effect/http-api"
import { AccessReviewsApi } from "./AccessReviews.ts"
import { ApiKeysApi } from "./ApiKeys.ts"
import { EnrollmentsApi } from "./Enrollments.ts"
import { LifecycleApi, LifecycleKeysApi } from "./Lifecycle.ts"
import { MeApi } from "./Me.ts"
import { NotificationsApi } from "./Notifications.ts"
import { OperationsApi } from "./Operations.ts"
import { PoliciesApi } from "./Policies.ts"
import { RequestsApi } from "./Requests.ts"
import { ServiceGrantsApi } from "./ServiceGrants.ts"
import { StreamPollApi } from "./StreamPoll.ts"
import { StreamDiscoveryApi, StreamsApi } from "./Streams.ts"
import { SystemApi } from "./System.ts"
import { TransfersApi } from "./Transfers.ts"
import { WebhooksApi } from "./Webhooks.ts"
import { WebsitesApi } from "./Websites.ts"

/** The version that the specification gives the machine-readable description. */
export const apiVersion = "0.2.0"

/** The contract where domain transfers are off: their paths do not exist, whatever a request sends. */
export class ApiWithoutTransfers extends HttpApi.make("bailiwick")
  .add(SystemApi, ApiKeysApi, WebhooksApi, NotificationsApi)
  .add(MeApi, AccessReviewsApi, ServiceGrantsApi, OperationsApi)
  .add(RequestsApi, EnrollmentsApi, WebsitesApi, PoliciesApi)
  .add(LifecycleApi, LifecycleKeysApi, StreamsApi, StreamPollApi, StreamDiscoveryApi)
  .annotateMerge(OpenApi.annotations({ title: "Bailiwick", version: apiVersion, servers: [{ url: "/" }] })) {}

export class Api extends ApiWithoutTransfers.add(TransfersApi) {}
