/** Every variable (docs/configuration.md): its parser, its default and an example. */
import { Result } from "effect"
import { defaultName } from "../../services/platform/Brand.ts"
import { leastAuditDays } from "../../services/platform/observability/AuditDays.ts"
import { specified } from "../../services/webhooks/RetrySchedule.ts"
import { otlpVariables } from "./OtlpVariables.ts"
import {
  any,
  boolean,
  brandColor,
  brandLogo,
  brandName,
  certificates,
  cidrs,
  consoleIssuers,
  delays,
  frameOrigin,
  headers,
  host,
  identityProvider,
  int,
  issuers,
  list,
  listening,
  literal,
  millis,
  millisUpTo,
  optional,
  origin,
  type Parsed,
  readable,
  sender,
  serviceClient,
  share,
  tokenIssuers,
  transmitters,
  url,
  urls,
  witnesses,
} from "./Parsers.ts"

export const roles = ["api", "actors", "relay", "timers", "intake", "delivery", "mail", "lifecycle"] as const
export type Role = (typeof roles)[number]

/** How the identity directory is fed (docs/configuration.md): by files alone, by the bus as well, or not at all. */
export const identityDirectories = ["files", "follow", "off"] as const
export type IdentityDirectory = (typeof identityDirectories)[number]

export interface Variable<A> {
  readonly name: string
  readonly parse: (text: string) => Parsed<A>
  readonly fallback: A
  readonly example: string
}

const rolesOf = (text: string): Parsed<ReadonlySet<Role>> =>
  text === "all"
    ? Result.succeed(new Set(roles))
    : Result.flatMap(list(literal(...roles))(text), (some) =>
      some.length === 0 ? Result.fail("names no role") : Result.succeed(new Set(some)))

const day = 86_400_000

const exampleWitness = "witness.example.net+26489758+BEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R"

export const variables = {
  host: { name: "HOST", parse: listening, fallback: "127.0.0.1", example: "127.0.0.1" },
  port: { name: "PORT", parse: int(0, 65_535), fallback: 8080, example: "8080" },
  home: { name: "BAILIWICK_HOME", parse: any, fallback: ".bailiwick", example: ".bailiwick" },
  databaseUrl: {
    name: "DATABASE_URL",
    parse: optional(url("postgres", "postgresql")),
    fallback: null,
    example: "postgres://user:password@127.0.0.1:5432/bailiwick",
  },
  databaseOwnerUrl: {
    name: "DATABASE_OWNER_URL",
    parse: optional(url("postgres", "postgresql")),
    fallback: null,
    example: "postgres://owner:password@127.0.0.1:5432/bailiwick",
  },
  natsUrl: {
    name: "NATS_URL",
    parse: optional(urls("nats", "tls")),
    fallback: null,
    example: "nats://127.0.0.1:4222",
  },
  natsCreds: { name: "NATS_CREDS", parse: optional(readable), fallback: null, example: "/etc/bailiwick/nats.creds" },
  natsReplicas: { name: "NATS_REPLICAS", parse: optional(int(1, 5)), fallback: null, example: "3" },
  publicUrl: {
    name: "PUBLIC_URL",
    parse: optional(origin),
    fallback: null,
    example: "https://mail.example.com",
  },
  nodeHttp: { name: "NODE_HTTP", parse: boolean, fallback: false, example: "true" },
  httpConnections: {
    name: "HTTP_CONNECTIONS",
    parse: optional(int(1, 1_000_000)),
    fallback: null,
    example: "4096",
  },
  httpHeaderTimeout: {
    name: "HTTP_HEADER_TIMEOUT",
    parse: millisUpTo(3_600_000, "an hour"),
    fallback: 10_000,
    example: "10 seconds",
  },
  roles: { name: "ROLES", parse: rolesOf, fallback: new Set<Role>(roles), example: "api,actors" },
  cluster: { name: "CLUSTER", parse: literal("on", "off"), fallback: "off" as const, example: "on" },
  clusterHost: { name: "CLUSTER_HOST", parse: listening, fallback: "127.0.0.1", example: "10.0.0.5" },
  clusterPort: { name: "CLUSTER_PORT", parse: int(0, 65_535), fallback: 0, example: "7400" },
  demo: { name: "DEMO", parse: optional(boolean), fallback: null, example: "false" },
  mailIssuers: {
    name: "MAIL_ISSUERS",
    parse: issuers,
    fallback: [],
    example: `[{"issuer":"https://id.example.com","jwks_uri":"https://id.example.com/jwks"}]`,
  },
  managementIssuers: {
    name: "MANAGEMENT_ISSUERS",
    parse: tokenIssuers,
    fallback: [],
    example: `[{"issuer":"https://id.example.com","jwks_uri":"https://id.example.com/jwks"}]`,
  },
  lifecycleIssuers: {
    name: "LIFECYCLE_ISSUERS",
    parse: tokenIssuers,
    fallback: [],
    example: `[{"issuer":"https://id.example.com","jwks_uri":"https://id.example.com/jwks"}]`,
  },
  console: { name: "CONSOLE", parse: literal("off", "read", "on"), fallback: "on" as const, example: "read" },
  consoleIssuers: {
    name: "CONSOLE_ISSUERS",
    parse: consoleIssuers,
    fallback: [],
    example: `[{"issuer":"https://id.example.com","client_id":"bailiwick"}]`,
  },
  embedOrigins: { name: "EMBED_ORIGINS", parse: list(frameOrigin), fallback: [], example: "https://app.example.com" },
  brandName: { name: "BRAND_NAME", parse: brandName, fallback: defaultName, example: "Example Mail" },
  brandColor: { name: "BRAND_COLOR", parse: brandColor, fallback: null, example: "#0550ae" },
  brandLogo: { name: "BRAND_LOGO", parse: brandLogo, fallback: null, example: "/etc/bailiwick/logo.svg" },
  mailWriteRate: { name: "MAIL_WRITE_RATE", parse: int(0, 10_000_000), fallback: 3_000, example: "3000" },
  mailReadRate: { name: "MAIL_READ_RATE", parse: int(0, 10_000_000), fallback: 30_000, example: "30000" },
  refusedCredentialsRate: {
    name: "REFUSED_CREDENTIALS_RATE",
    parse: int(0, 10_000_000),
    fallback: 300,
    example: "300",
  },
  trustedProxies: { name: "TRUSTED_PROXIES", parse: cidrs, fallback: [], example: "10.0.0.0/8,fd00:10::/64" },
  managementWriteRate: { name: "MANAGEMENT_WRITE_RATE", parse: int(0, 10_000_000), fallback: 600, example: "600" },
  managementReadRate: { name: "MANAGEMENT_READ_RATE", parse: int(0, 10_000_000), fallback: 6_000, example: "6000" },
  managementApprovalMaxAge: {
    name: "MANAGEMENT_APPROVAL_MAX_AGE",
    parse: optional(millis),
    fallback: null,
    example: "15 minutes",
  },
  identityProvider: {
    name: "IDENTITY_PROVIDER",
    parse: identityProvider,
    fallback: null,
    example: `{"registration_endpoint":"https://id.example.com/reg","initial_access_token":"..."}`,
  },
  directoryWriterClients: {
    name: "DIRECTORY_WRITER_CLIENTS",
    parse: list(serviceClient),
    fallback: [],
    example: "https://id.example.com hr-sync",
  },
  assertionClients: {
    name: "ASSERTION_CLIENTS",
    parse: list(serviceClient),
    fallback: [],
    example: "https://id.example.com sign-in",
  },
  assertionRate: { name: "ASSERTION_RATE", parse: int(0, 10_000_000), fallback: 6_000, example: "6000" },
  signInUrl: {
    name: "MAIL_SIGN_IN_URL",
    parse: optional(url("http", "https")),
    fallback: null,
    example: "https://id.example.com/sign-in",
  },
  portalUrl: {
    name: "PORTAL_URL",
    parse: optional(url("http", "https")),
    fallback: null,
    example: "https://portal.example.com",
  },
  retryDelays: {
    name: "WEBHOOKS_RETRY_DELAYS",
    parse: delays,
    fallback: specified.delays,
    example: "1 minute,5 minutes,30 minutes,2 hours,6 hours,24 hours,48 hours,72 hours",
  },
  retryJitter: { name: "WEBHOOKS_RETRY_JITTER", parse: share, fallback: specified.jitter, example: "0.1" },
  webhooksTimeout: {
    name: "WEBHOOKS_TIMEOUT",
    parse: millisUpTo(3_600_000, "an hour"),
    fallback: 10_000,
    example: "10 seconds",
  },
  webhooksCa: {
    name: "WEBHOOKS_CA_FILE",
    parse: optional(certificates),
    fallback: null,
    example: "/etc/ssl/private-ca.pem",
  },
  allowedCidrs: {
    name: "WEBHOOKS_ALLOWED_CIDRS",
    parse: optional(cidrs),
    fallback: null,
    example: "10.20.0.0/16,fd00:20::/32",
  },
  pauseFailing: { name: "WEBHOOKS_PAUSE_FAILING", parse: boolean, fallback: false, example: "true" },
  successHeaders: { name: "WEBHOOKS_SUCCESS_HEADERS", parse: boolean, fallback: false, example: "true" },
  deliveredDays: { name: "WEBHOOKS_RETENTION_DAYS", parse: int(1, 3650), fallback: 30, example: "30" },
  deadLetterDays: {
    name: "WEBHOOKS_DEAD_LETTER_RETENTION_DAYS",
    parse: int(1, 3650),
    fallback: 90,
    example: "90",
  },
  perAccount: { name: "WEBHOOKS_PER_ACCOUNT", parse: int(1, 10_000), fallback: 100, example: "100" },
  intakeMemoryDays: { name: "INTAKE_MEMORY_DAYS", parse: int(1, 3650), fallback: 400, example: "400" },
  auditDays: { name: "AUDIT_RETENTION_DAYS", parse: int(leastAuditDays, 3650), fallback: 400, example: "400" },
  backfillFloor: { name: "BACKFILL_FLOOR", parse: int(1, 1_000_000), fallback: 100, example: "100" },
  backfillRate: { name: "BACKFILL_RATE", parse: int(1, 1_000_000), fallback: 2_000, example: "2000" },
  identityDirectory: {
    name: "IDENTITY_DIRECTORY",
    parse: optional(literal(...identityDirectories)),
    fallback: null,
    example: "files",
  },
  transfersEnabled: { name: "DOMAIN_TRANSFERS_ENABLED", parse: boolean, fallback: true, example: "true" },
  transferRequestWindow: { name: "TRANSFER_REQUEST_WINDOW", parse: millis, fallback: 7 * day, example: "7 days" },
  transferSafetyWindow: { name: "TRANSFER_SAFETY_WINDOW", parse: millis, fallback: day, example: "24 hours" },
  initiateTransferRate: { name: "INITIATE_TRANSFER_RATE", parse: int(1, 10_000), fallback: 5, example: "5" },
  logWitnesses: {
    name: "LOG_WITNESSES",
    parse: witnesses,
    fallback: [],
    example: `${exampleWitness} https://witness.example.net`,
  },
  signalTransmitters: {
    name: "SIGNAL_TRANSMITTERS",
    parse: transmitters,
    fallback: [],
    example: `[{"issuer":"https://id.example.com","jwks_uri":"https://id.example.com/jwks",` +
      `"audience":"https://mail.example.com","push_token":"a-secret-of-at-least-32-characters"}]`,
  },
  keysFile: { name: "BAILIWICK_KEYS_FILE", parse: optional(any), fallback: null, example: "/etc/bailiwick/keys.json" },
  keys: { name: "BAILIWICK_KEYS", parse: optional(any), fallback: null, example: "the key ring as JSON" },
  smtpUrl: {
    name: "SMTP_URL",
    parse: optional(url("smtp", "smtps")),
    fallback: null,
    example: "smtps://user:password@smtp.example.com:465",
  },
  mailFrom: { name: "MAIL_FROM", parse: sender, fallback: null, example: "Bailiwick <no-reply@mail.example.com>" },
  slackHosts: {
    name: "SLACK_HOSTS",
    parse: list(host),
    fallback: ["hooks.slack.com"],
    example: "hooks.slack.com",
  },
  keyTransitionDeadline: {
    name: "KEY_TRANSITION_DEADLINE",
    parse: millis,
    fallback: 14 * day,
    example: "14 days",
  },
  otlp: {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    parse: optional(url("http", "https")),
    fallback: null,
    example: "http://127.0.0.1:4318",
  },
  otelDisabled: { name: "OTEL_SDK_DISABLED", parse: boolean, fallback: false, example: "true" },
  otlpHeaders: {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    parse: optional(headers),
    fallback: null,
    example: "authorization=Bearer%20token",
  },
  otlpProtocol: {
    name: "OTEL_EXPORTER_OTLP_PROTOCOL",
    parse: literal("http/json", "http/protobuf"),
    fallback: "http/json" as const,
    example: "http/protobuf",
  },
  ...otlpVariables,
  otlpServiceName: { name: "OTEL_SERVICE_NAME", parse: any, fallback: "bailiwick", example: "bailiwick" },
  otlpMetricMillis: {
    name: "OTEL_METRIC_EXPORT_INTERVAL",
    parse: int(1_000, 3_600_000),
    fallback: 60_000,
    example: "60000",
  },
  logFormat: {
    name: "LOG_FORMAT",
    parse: optional(literal("pretty", "json")),
    fallback: null,
    example: "json",
  },
  logLevel: {
    name: "LOG_LEVEL",
    parse: literal("trace", "debug", "info", "warn", "error"),
    fallback: "info" as const,
    example: "info",
  },
  metricsPort: { name: "METRICS_PORT", parse: optional(int(1, 65_535)), fallback: null, example: "9464" },
} satisfies Record<string, Variable<unknown>>

type Variables = typeof variables
type ValueOf<V> = V extends
  { readonly parse: (text: string) => Result.Result<infer A, string>; readonly fallback: infer F } ? A | F
  : never
/** The parsed variables, before checks across several of them. */
export type Values = { readonly [K in keyof Variables]: ValueOf<Variables[K]> }
