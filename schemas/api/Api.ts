/** The whole contract, one OpenAPI document. */
import { HttpApi, OpenApi } from "effect/http-api"
import { AccessReviewsApi } from "./AccessReviewsApi.ts"
import { AccountApi } from "./AccountApi.ts"
import { ApiKeysApi } from "./ApiKeysApi.ts"
import { AssertionsApi } from "./AssertionsApi.ts"
import { CampaignsApi } from "./CampaignsApi.ts"
import { ConsoleApi } from "./ConsoleApi.ts"
import { DeliveriesApi } from "./DeliveriesApi.ts"
import { EnrollmentsApi } from "./EnrollmentsApi.ts"
import { InstitutionsApi } from "./InstitutionsApi.ts"
import { LifecycleApi, LifecycleKeysApi } from "./LifecycleApi.ts"
import { MeApi } from "./MeApi.ts"
import { NotificationsApi } from "./NotificationsApi.ts"
import { OperationsApi } from "./OperationsApi.ts"
import { OperatorApi } from "./OperatorApi.ts"
import { PeriodicReviewsApi } from "./PeriodicReviewsApi.ts"
import { PoliciesApi } from "./PoliciesApi.ts"
import { RequestsApi } from "./RequestsApi.ts"
import { RolloutsApi } from "./RolloutsApi.ts"
import { ServiceGrantsApi } from "./ServiceGrantsApi.ts"
import { SigningKeysApi } from "./SigningKeysApi.ts"
import { StreamPollApi } from "./StreamPollApi.ts"
import { StreamDiscoveryApi, StreamsApi } from "./StreamsApi.ts"
import { SystemApi } from "./SystemApi.ts"
import { TransfersApi } from "./TransfersApi.ts"
import { UpkeepApi } from "./UpkeepApi.ts"
import { WebhooksApi } from "./WebhooksApi.ts"
import { WebsitesApi } from "./WebsitesApi.ts"

/** The version that the specification gives the machine-readable description. */
export const apiVersion = "0.2.0"

/** The contract where domain transfers are off: their paths do not exist, whatever a request sends. */
export class ApiWithoutTransfers extends HttpApi.make("bailiwick")
  .add(SystemApi, AccountApi, ApiKeysApi, WebhooksApi, DeliveriesApi, NotificationsApi)
  .add(MeApi, AccessReviewsApi, ServiceGrantsApi, OperationsApi, OperatorApi, SigningKeysApi, UpkeepApi, RolloutsApi)
  .add(RequestsApi, InstitutionsApi, PeriodicReviewsApi, CampaignsApi, EnrollmentsApi, WebsitesApi, PoliciesApi)
  .add(AssertionsApi)
  .add(ConsoleApi)
  .add(LifecycleApi, LifecycleKeysApi, StreamsApi, StreamPollApi, StreamDiscoveryApi)
  .annotateMerge(OpenApi.annotations({ title: "Bailiwick", version: apiVersion, servers: [{ url: "/" }] })) {}

export class Api extends ApiWithoutTransfers.add(TransfersApi) {}
