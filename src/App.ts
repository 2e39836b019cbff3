/** The single place where layers meet. A role is a set of loops and edges over the same services. */
import { Effect, Layer, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api, ApiWithoutTransfers } from "../schemas/api/Api.ts"
import { AccountReads } from "../services/accounts/AccountReads.ts"
import { ApiKeys } from "../services/accounts/ApiKeys.ts"
import { configuredIssuers, Cookies } from "../services/authentication/Cookies.ts"
import { KeyUses } from "../services/authentication/KeyUses.ts"
import { Principals } from "../services/authentication/Principals.ts"
import { Workspaces } from "../services/accounts/Workspaces.ts"
import { Directory } from "../services/directory/Directory.ts"
import { Inbox } from "../services/notifications/Inbox.ts"
import { Live } from "../services/notifications/Live.ts"
import { Epochs } from "../services/lifecycle/Epochs.ts"
import { NotificationIntake } from "../services/notifications/NotificationIntake.ts"
import { Notifications } from "../services/notifications/Notifications.ts"
import { Preferences } from "../services/notifications/Preferences.ts"
import { NotificationRetention } from "../services/notifications/NotificationRetention.ts"
import { AccessTokens, configuredTokenIssuers } from "../services/people/AccessTokens.ts"
import { CallerAuthentication } from "../services/people/CallerAuthentication.ts"
import { SessionActivity } from "../services/people/SessionActivity.ts"
import { type GaugedQueue, gaugedQueues } from "../services/operations/QueueGauges.ts"
import { OperatorDeadLetters } from "../services/operations/OperatorDeadLetters.ts"
import { OperatorWebhooks } from "../services/operations/OperatorWebhooks.ts"
import { WebhookHolds } from "../services/webhooks/WebhookHolds.ts"
import { BusTail } from "../services/operations/BusTail.ts"
import { OperatorStream } from "../services/operations/OperatorStream.ts"
import { Brand } from "../services/platform/Brand.ts"
import { Audit } from "../services/platform/observability/Audit.ts"
import { AuditPartitions } from "../services/platform/observability/AuditPartitions.ts"
import { WakeUps } from "../services/platform/messaging/WakeUps.ts"
import { Bus } from "../services/platform/messaging/Bus.ts"
import { Database } from "../services/platform/database/Database.ts"
import { VersionFence, versionFence } from "../services/platform/database/VersionFence.ts"
import { DatabaseClock } from "../services/platform/database/DatabaseClock.ts"
import { Jobs } from "../services/platform/messaging/Jobs.ts"
import { Mailbox } from "../services/platform/messaging/Mailbox.ts"
import { gaugedMaps } from "../services/platform/MapSizes.ts"
import { Mails } from "../services/platform/mail/Mails.ts"
import { Outbound } from "../services/platform/Outbound.ts"
import { OneTimeTokens } from "../services/platform/security/OneTimeTokens.ts"
import { Outbox } from "../services/platform/messaging/Outbox.ts"
import { RateLimits } from "../services/platform/security/RateLimits.ts"
import { Readiness } from "../services/platform/observability/Readiness.ts"
import { RejectedMessages } from "../services/platform/messaging/RejectedMessages.ts"
import { Timers } from "../services/platform/database/Timers.ts"
import { Vault } from "../services/platform/security/Vault.ts"
import { WorkerHeartbeats } from "../services/platform/observability/WorkerHeartbeats.ts"
import { Transfers } from "../services/transfers/Transfers.ts"
import { AccountDeliveries } from "../services/webhooks/AccountDeliveries.ts"
import { CountCompaction } from "../services/webhooks/CountCompaction.ts"
import { FailingWebhooks } from "../services/webhooks/FailingWebhooks.ts"
import { DeadLetters } from "../services/webhooks/DeadLetters.ts"
import { Deliveries } from "../services/webhooks/Deliveries.ts"
import { DeliveryStream } from "../services/webhooks/DeliveryStream.ts"
import { DeliveryStats } from "../services/webhooks/DeliveryStats.ts"
import { DeliveryRecords } from "../services/webhooks/DeliveryRecords.ts"
import { Endpoints } from "../services/webhooks/Endpoints.ts"
import { Listeners } from "../services/webhooks/Listeners.ts"
import { EventIntake } from "../services/webhooks/EventIntake.ts"
import { Partitions } from "../services/webhooks/Partitions.ts"
import { latePartitions } from "../services/webhooks/PartitionWatch.ts"
import { Replays } from "../services/webhooks/Replays.ts"
import { Sender } from "../services/webhooks/Sender.ts"
import { Settlement } from "../services/webhooks/Settlement.ts"
import { WebhookJobs } from "../services/webhooks/WebhookJobs.ts"
import { WaitingDeliveries } from "../services/webhooks/WaitingDeliveries.ts"
import { Webhooks } from "../services/webhooks/Webhooks.ts"
import { manyProcesses, singleProcess } from "./actors/Cluster.ts"
import { domainActor } from "./actors/DomainEntity.ts"
import { identityHandlers, identityServices } from "./App/IdentityLayers.ts"
import { lifecycleHandlers, lifecycleWorkers } from "./App/LifecycleLayers.ts"
import { mail } from "./App/MailLayers.ts"
import { pages } from "./App/PageLayers.ts"
import { signalPolls, signalRoutes } from "./App/SignalLayers.ts"
import { type AppConfig, originAt, type Role } from "./AppConfig.ts"
import { signInWarning } from "./AppConfig/Warnings.ts"
import { allKinds, trustInBus } from "./DirectoryKinds.ts"
import { heldLog } from "./doctor/DecisionLogCheck.ts"
import { Findings } from "./doctor/Findings.ts"
import { endDemo, fillDemo } from "./embedded/DemoDirectory.ts"
import { EmbeddedIssuer } from "./embedded/EmbeddedIssuer.ts"
import { consoleAuth, consoleHandlersOf, consoleRoutes, consoleServices, prepareConsole } from "./App/ConsoleLayers.ts"
import { account } from "./http/handlers/AccountHandlers.ts"
import { apiKeys } from "./http/handlers/ApiKeysHandlers.ts"
import { authenticated, presented } from "./http/auth/AccountAuth.ts"
import { DevKey } from "./http/dev/DevKey.ts"
import * as DevIssuer from "./http/dev/DevIssuer.ts"
import * as DevMailboxPages from "./http/dev/DevMailboxPage.ts"
import * as DevConsole from "./http/dev/DevConsole.ts"
import * as DevSignIn from "./http/dev/DevSignIn.ts"
import * as Docs from "./http/docs/Docs.ts"
import { Clients } from "./http/edge/Clients.ts"
import { RejectionAudit } from "./http/edge/RejectionAudit.ts"
import { RefusedCredentials } from "./http/edge/RefusedCredentials.ts"
import { AccountLimits } from "./http/auth/Limits.ts"
import { managed } from "./http/auth/ManagementAuth.ts"
import { deliveries } from "./http/handlers/DeliveriesHandlers.ts"
import { fastMe } from "./http/handlers/MeHandlers.ts"
import { notifications } from "./http/handlers/NotificationsHandlers.ts"
import { Server } from "./http/Server.ts"
import { system } from "./http/handlers/SystemHandlers.ts"
import * as TransferPages from "./http/pages/TransferPages.ts"
import { transfers } from "./http/handlers/TransfersHandlers.ts"
import { webhooks } from "./http/handlers/WebhooksHandlers.ts"
import { fillNow, refuseUnfilled } from "./MigrationBackfills.ts"
import { migrated, newest, tables } from "./Migrations.ts"
import { type BackingServices, portsOf } from "./BackingServices.ts"
import { DirectoryIntake } from "./workers/DirectoryIntake.ts"
import { WebhookRetries } from "./workers/WebhookRetries.ts"
import { WebhookSettlement } from "./workers/WebhookSettlement.ts"
import { EmailEventIntake } from "./workers/EmailEventIntake.ts"
import { LifecycleMaintenance } from "./workers/LifecycleMaintenance.ts"
import { NotificationIntakeWorker } from "./workers/NotificationWorker.ts"
import { ProviderWorker } from "./workers/ProviderWorker.ts"
import { Relay } from "./workers/Relay.ts"
import { NoticeMailer } from "./workers/NoticeMailer.ts"
import { RequestTimers } from "./workers/RequestTimers.ts"
import { TransferTimers as TimersWorker } from "./workers/TransferTimers.ts"
import { BackfillWorker } from "./workers/BackfillWorker.ts"
import { Maintenance } from "./workers/Maintenance.ts"

/**
 * The note in `/ready`: that the schema refuses this program, the sign-in warning, the partitions that are late, and
 * that the transparency log is held.
 * Probes are frequent, so the look at the partitions is cached for a minute.
 */
const noteFor = (config: AppConfig) =>
  Effect.gen(function* () {
    const { refusal } = yield* VersionFence
    const partitions = yield* Effect.cachedWithTTL(Effect.orElseSucceed(latePartitions, () => null), "1 minute")
    const log = yield* Effect.cachedWithTTL(
      Effect.orElseSucceed(Effect.timeout(heldLog, "1 second"), () => null),
      "5 seconds",
    )
    return Effect.map(
      Effect.all([refusal, partitions, log]),
      ([behind, late, held]) =>
        [behind, signInWarning(config), late, held].filter((note) => note !== null).join("; ") || null,
    )
  })

/** A database that ends with this process has no other one to finish a backfill beside it. */
const fillingOf = ({ backfillFloor: floor, backfillRate: ceiling }: AppConfig, { database }: BackingServices) =>
  database.embedded ? fillNow({ floor, ceiling }, (text) => Effect.logInfo(text)) : refuseUnfilled

/** The platform services, on the migrated PostgreSQL, its clock and the broker. */
const ground = (config: AppConfig, backing: BackingServices) =>
  Layer.mergeAll(
    Audit.layer,
    RejectedMessages.layer,
    RateLimits.layer,
    Mails.layer,
    Jobs.layer,
    Layer.unwrap(Effect.map(noteFor(config), (note) => Readiness.layer(tables, note))),
  ).pipe(
    Layer.merge(Layer.merge(OneTimeTokens.layer, Timers.layer)),
    Layer.provideMerge(Outbox.layer),
    Layer.provideMerge(WakeUps.layer),
    Layer.provideMerge(Layer.mergeAll(
      Bus.layer({
        url: backing.natsUrl,
        ...(config.natsCreds === null ? {} : { credsFile: config.natsCreds }),
        ...(config.natsReplicas === null ? {} : { replicas: config.natsReplicas }),
      }),
      Vault.layer({ file: config.keysFile ?? "", ...(config.keys === null ? {} : { keys: config.keys }) }),
      Outbound.layer({
        allowedCidrs: config.allowedCidrs ?? [],
        certificateAuthorities: config.webhooksCa === null ? [] : [config.webhooksCa],
        timeoutMillis: config.webhooksTimeout,
        ownPorts: [
          ...portsOf(backing),
          config.port,
          config.clusterPort,
          ...(config.metricsPort === null ? [] : [config.metricsPort]),
        ],
      }),
    )),
    Layer.provideMerge(Epochs.layer),
    Layer.provideMerge(versionFence(newest)),
    Layer.provideMerge(DatabaseClock.layer()),
    Layer.provideMerge(Layer.effectDiscard(migrated(fillingOf(config, backing)))),
    Layer.provideMerge(Database.layer({
      url: backing.database.url,
      ownerUrl: backing.database.ownerUrl,
      maxConnections: 16,
    })),
  )

/** The installation's public origin: PUBLIC_URL, else the address of the listener. */
export const publicUrlOf = (config: AppConfig): URL => new URL(config.publicUrl ?? originAt(config))

const issuerOf = (config: AppConfig) => new URL("/dev/issuer", publicUrlOf(config)).href

const demoIssuer = (config: AppConfig, { home }: BackingServices) =>
  EmbeddedIssuer.layer({ home, issuer: issuerOf(config) })

/** Verifies session cookies. With DEMO the embedded issuer, which signs with the home's key, is the only issuer. */
const cookies = (config: AppConfig, backing: BackingServices) =>
  config.demo
    ? Layer.unwrap(Effect.map(EmbeddedIssuer, ({ cookieIssuer }) => Cookies.layer([cookieIssuer]))).pipe(
      Layer.provide(demoIssuer(config, backing)),
    )
    : Layer.unwrap(Effect.map(configuredIssuers(config.mailIssuers), Cookies.layer))

/**
 * Verifies people's access tokens. With DEMO the embedded issuer's key is accepted for every issuer; the directory
 * decides which person a token names.
 */
const accessTokens = (config: AppConfig, backing: BackingServices) =>
  config.demo
    ? Layer.unwrap(Effect.map(EmbeddedIssuer, ({ tokenIssuer }) => AccessTokens.layer(() => tokenIssuer))).pipe(
      Layer.provide(demoIssuer(config, backing)),
    )
    : Layer.unwrap(Effect.map(configuredTokenIssuers(config.managementIssuers), AccessTokens.layer))

/** Authenticates callers of the identity API. */
const callers = (config: AppConfig, backing: BackingServices) =>
  CallerAuthentication.layer.pipe(Layer.provideMerge(Layer.merge(SessionActivity.layer, accessTokens(config, backing))))

const services = (config: AppConfig, backing: BackingServices) =>
  Layer.mergeAll(
    DeliveryRecords.layer({ deliveredDays: config.deliveredDays }),
    AccountDeliveries.layer({ deliveredDays: config.deliveredDays }),
    DeliveryStats.layer,
    Webhooks.layer({ perAccount: config.perAccount }),
    ApiKeys.layer,
    AccountReads.layer({ webhooksPerAccount: config.perAccount }),
    WebhookJobs.layer.pipe(Layer.provideMerge(Replays.layer)),
    WaitingDeliveries.layer,
    OperatorDeadLetters.layer.pipe(Layer.provide(DeadLetters.layer), Layer.provide(Replays.layer)),
    OperatorWebhooks.layer.pipe(Layer.provide(WebhookHolds.layer)),
    NotificationRetention.layer(),
    CountCompaction.layer,
    FailingWebhooks.layer({ pause: config.pauseFailing }),
    AuditPartitions.layer(config),
    Partitions.layer({
      deliveredDays: config.deliveredDays,
      deadLetterDays: config.deadLetterDays,
      intakeMemoryDays: config.intakeMemoryDays,
    }),
    Directory.layer(allKinds),
    Transfers.layer({
      enabled: config.transfersEnabled,
      requestWindowMillis: config.transferRequestWindow,
      safetyWindowMillis: config.transferSafetyWindow,
      initiateLimit: config.initiateTransferRate,
      dkim: "rsa",
    }),
  ).pipe(
    Layer.provideMerge(identityServices(config, issuerOf(config))),
    Layer.provideMerge(Layer.mergeAll(Principals.layer, callers(config, backing))),
    Layer.provideMerge(Layer.mergeAll(KeyUses.layer, Notifications.layer, cookies(config, backing))),
    Layer.provideMerge(ground(config, backing)),
  )

const delivery = (config: AppConfig) => {
  const sender = { timeoutMillis: config.webhooksTimeout, successHeaders: config.successHeaders }
  // At a stop claims end first, and then what became of them is settled.
  const retries = Layer.provide(WebhookRetries.layer, WebhookSettlement.layer)
  return Layer.merge(EmailEventIntake.layer, retries).pipe(
    Layer.provide(EventIntake.layer),
    Layer.provide(Deliveries.layer(sender)),
    Layer.provide(Settlement.layer({ ...sender, schedule: config.schedule })),
    Layer.provide([Sender.layer(sender), Endpoints.layer, Listeners.layer]),
  )
}

const intake = (config: AppConfig) =>
  Layer.merge(
    DirectoryIntake.layer({ identity: trustInBus(config.identityDirectory) }),
    NotificationIntakeWorker.layer.pipe(Layer.provide(NotificationIntake.layer)),
  )

/** The embedded issuer and the developer pages, with DEMO only; people get to them by the key that is printed at start. */
const devRoutes = (home: string, publicUrl: URL) =>
  Layer.mergeAll(DevIssuer.layer(publicUrl), DevMailboxPages.layer(home), DevSignIn.layer(publicUrl), DevConsole.layer)

/** The sign-in page that a mailed link's page offers; null: the page can only say that the person must sign in. */
const signInUrlOf = ({ demo, signInUrl }: AppConfig, publicUrl: URL): URL | null =>
  signInUrl !== null ? new URL(signInUrl) : demo ? new URL(DevSignIn.devSignInPath, publicUrl) : null

const transferPages = (config: AppConfig, publicUrl: URL) =>
  config.transfersEnabled
    ? Layer.provide(
      TransferPages.layer({
        publicUrl,
        signInUrl: signInUrlOf(config, publicUrl),
        safetyWindowMillis: config.transferSafetyWindow,
      }),
      Workspaces.layer,
    )
    : Layer.empty

/** The actors of this process, and the clients of actors in other processes. */
const actors = (config: AppConfig, { database }: BackingServices) => {
  const { clusterHost: host, clusterPort: port } = config
  const here = config.roles.has("actors")
  const living = here ? domainActor : Layer.empty
  return config.cluster === "on"
    ? Layer.provideMerge(living, manyProcesses({ url: database.url, address: here ? { host, port } : null }))
    : Layer.provideMerge(here ? living : Layer.succeed(Mailbox, { timeoutMillis: 0 }), singleProcess)
}

/** Makes the API's documents and the console's files, which need neither the database nor the broker. */
export const prepare = (config: AppConfig) => {
  if (!config.roles.has("api")) return Effect.void
  const { origin } = publicUrlOf(config)
  return Effect.andThen(
    config.transfersEnabled ? Docs.prepare(Api, origin) : Docs.prepare(ApiWithoutTransfers, origin),
    prepareConsole(config),
  )
}

/** The handlers of the identity API, with the doctor and what needs it. */
const identityApi = (config: AppConfig, { natsUrl }: BackingServices) =>
  identityHandlers(config).pipe(
    Layer.provide(Layer.unwrap(Effect.map(Findings, ({ report }) => OperatorStream.layer(report)))),
    Layer.provide(BusTail.layer),
    Layer.provide(Findings.layer(config, natsUrl)),
    Layer.provide(DeadLetters.layer),
    Layer.provide(Replays.layer),
  )

const api = (config: AppConfig, backing: BackingServices) => {
  const publicUrl = publicUrlOf(config)
  const rates = { reads: config.managementReadRate, writes: config.managementWriteRate }
  const routes = Layer.mergeAll(
    fastMe(rates),
    (config.transfersEnabled
      ? Layer.provide(HttpApiBuilder.layer(Api), transfers)
      : HttpApiBuilder.layer(ApiWithoutTransfers)).pipe(
        Layer.provide([system, account, apiKeys, webhooks, deliveries, notifications]),
        Layer.provide(consoleHandlersOf(config, publicUrl)),
        Layer.provide(identityApi(config, backing)),
        Layer.provide(lifecycleHandlers(config, publicUrl, demoIssuer(config, backing), rates)),
        Layer.provide([Inbox.layer, Live.layer, Preferences.layer, DeliveryStream.layer]),
      ),
    config.transfersEnabled ? Docs.layer(Api, publicUrl.origin) : Docs.layer(ApiWithoutTransfers, publicUrl.origin),
    transferPages(config, publicUrl),
    consoleRoutes(config, publicUrl),
    pages(config, publicUrl),
    signalRoutes(config),
    config.demo ? Layer.provide(devRoutes(backing.home, publicUrl), demoIssuer(config, backing)) : Layer.empty,
  ).pipe(
    Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
    Layer.provide(managed(rates)),
    Layer.provide(consoleAuth(config, publicUrl)),
    Layer.provide(consoleServices(config, publicUrl, issuerOf(config))),
    Layer.provide(AccountLimits.layer({ reads: config.mailReadRate, writes: config.mailWriteRate })),
    Layer.provide(actors(config, backing)),
  )
  return Server.layer(routes, {
    host: config.host,
    port: config.port,
    nodeHttp: config.nodeHttp,
    maxConnections: config.httpConnections,
    headerMillis: config.httpHeaderTimeout,
    lingerMillis: 1_000,
    ...(config.publicUrl === null ? {} : { publicUrl: config.publicUrl }),
  }).pipe(
    Layer.provide(RejectionAudit.layer),
    Layer.provide(RefusedCredentials.layer(config.refusedCredentialsRate)),
    Layer.provide(Clients.layer(config.trustedProxies)),
    Layer.provide(Layer.succeed(Brand, config.brand)),
  )
}

const demo = (config: AppConfig, { home }: BackingServices, instance: string) =>
  config.demo ? Layer.effectDiscard(fillDemo(home, instance)) : Layer.effectDiscard(endDemo)

/** The queues that each role works on. */
const queuesOf: { readonly [R in Role]?: ReadonlyArray<GaugedQueue> } = {
  delivery: ["deliveries"],
  relay: ["outbox", "outbox_ordered", "outbox_unordered"],
  mail: ["mails", "slack"],
  timers: ["jobs", "timers", "provider_jobs"],
}

/** All that this process does, by its roles. Provides `Server` where the process has the role `api`. */
export const app = (config: AppConfig, backing: BackingServices) => {
  const instance = crypto.randomUUID()
  const has = (role: Role) => config.roles.has(role)
  return Layer.mergeAll(
    has("api") ? api(config, backing) : Layer.empty,
    has("actors") && !has("api") && config.cluster === "on" ? actors(config, backing) : Layer.empty,
    has("relay") ? Relay.layer : Layer.empty,
    has("timers")
      ? Layer.mergeAll(
        ...[Maintenance.layer, LifecycleMaintenance.layer, ProviderWorker.layer, RequestTimers.layer],
        NoticeMailer.layer,
        BackfillWorker.layer({ floor: config.backfillFloor, ceiling: config.backfillRate }),
      )
      : Layer.empty,
    has("timers") && config.transfersEnabled ? TimersWorker.layer : Layer.empty,
    has("intake") ? Layer.merge(intake(config), signalPolls(config)) : Layer.empty,
    has("delivery") ? delivery(config) : Layer.empty,
    has("mail") ? mail(config, publicUrlOf(config)) : Layer.empty,
    has("lifecycle") ? lifecycleWorkers(config, publicUrlOf(config)) : Layer.empty,
    Layer.effectDiscard(gaugedQueues([...config.roles].flatMap((role) => queuesOf[role] ?? []))),
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(demo(config, backing, instance), gaugedMaps, WorkerHeartbeats.layer(instance))),
    Layer.provideMerge(DevKey.layer(publicUrlOf(config))),
    Layer.provideMerge(services(config, backing)),
  )
}

/**
 * Addresses of the database and the broker for runtime.json: they hold passwords, and are for this user's own tools.
 */
export const addresses = (backing: BackingServices) => ({
  database_url: Redacted.value(backing.database.url),
  database_owner_url: backing.database.ownerUrl === null ? null : Redacted.value(backing.database.ownerUrl),
  nats_url: Redacted.value(backing.natsUrl),
})
