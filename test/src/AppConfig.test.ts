import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { isAbsolute } from "node:path"
import { fileURLToPath } from "node:url"
import { load, originAt, roles } from "../../src/AppConfig.ts"
import { hour } from "../support/Fixtures.ts"

const here = fileURLToPath(import.meta.url)

const from = (env: Record<string, string>) =>
  load.pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env)))
const faultsOf = (env: Record<string, string>) =>
  Effect.map(Effect.flip(from(env)), ({ message }) => message.split("\n"))

/** Wrong values for each variable. */
const wrong: Record<string, ReadonlyArray<string>> = {
  PORT: ["http", "-1", "65536", "80.5", "1e3"],
  DATABASE_URL: ["mysql://user:hunter2@host/db", "hunter2"],
  DATABASE_OWNER_URL: ["hunter2"],
  NATS_URL: [
    ...["http://hunter2@host", "ws://host:4222", "nats://%zz@host"],
    ...["nats://a:4222,http://hunter2@b", "nats://a:4222,"],
  ],
  NATS_REPLICAS: ["0", "6", "three"],
  NATS_CREDS: ["/nowhere/hunter2.creds"],
  HOST: ["two names", "[::1]", "http://host"],
  CLUSTER_HOST: ["two names"],
  SMTP_URL: ["http://hunter2@host", "smtp://user:hunter2%zz@host"],
  PUBLIC_URL: ["mail.example.com", "ftp://mail.example.com", "https://mail.example.com/base"],
  NODE_HTTP: ["yes"],
  HTTP_CONNECTIONS: ["0", "unlimited"],
  HTTP_HEADER_TIMEOUT: ["10", "0 seconds", "61 minutes"],
  ROLES: ["api,everything", "All", ","],
  CLUSTER: ["yes", "true"],
  CLUSTER_PORT: ["-1", "70000"],
  DEMO: ["yes", "1", "TRUE"],
  MAIL_ISSUERS: [
    "[",
    "{}",
    `[{"issuer":"https://i.example"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","algorithms":["HS256"]}]`,
    `[{"issuer":"i","jwks_uri":"i.example/jwks"}]`,
  ],
  MANAGEMENT_ISSUERS: [
    "[",
    `[{"issuer":"https://i.example"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","algorithms":["EdDSA"]}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","max_aal":"aal4"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","max_lifetime":"a day"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","max_lifetime":"0 hours"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j","acr_map":{"gold":"high"}}]`,
    `[{"issuer":"i","jwks_uri":"file:///etc/keys.json"}]`,
    `[{"issuer":"i","jwks_uri":"http://i/j"},{"issuer":"i","jwks_uri":"http://i/k"}]`,
  ],
  LIFECYCLE_ISSUERS: ["{}"],
  CONSOLE: ["yes", "readonly"],
  CONSOLE_ISSUERS: [
    "[",
    `[{"issuer":"https://i.example"}]`,
    `[{"issuer":"http://i.example","client_id":"c"}]`,
    `[{"issuer":"i","client_id":"c"}]`,
    `[{"issuer":"https://i.example","client_id":"c","scope":"profile"}]`,
    `[{"issuer":"https://i.example","client_id":"c","client_secret_file":"/nowhere/hunter2"}]`,
    `[{"issuer":"https://i.example","client_id":"c"},{"issuer":"https://i.example","client_id":"d"}]`,
  ],
  EMBED_ORIGINS: ["https://*.example.com", "http://app.example.com", "https://app.example.com/path", "app"],
  BRAND_NAME: ["   ", "x".repeat(61), "Mail\u202e", "two\nlines"],
  BRAND_COLOR: ["blue", "#05a", "#0550ag", "0550ae"],
  BRAND_LOGO: ["/nowhere/hunter2.svg", here],
  IDENTITY_PROVIDER: ["none", "{}", `{"registration_endpoint":"https://"}`],
  MAIL_WRITE_RATE: ["-1", "a lot"],
  MAIL_READ_RATE: ["10000001"],
  REFUSED_CREDENTIALS_RATE: ["-1", "many"],
  TRUSTED_PROXIES: ["nginx", "10.0.0.1", "10.0.0.0/33"],
  MANAGEMENT_WRITE_RATE: ["-1", "600/min"],
  MANAGEMENT_READ_RATE: ["many"],
  MANAGEMENT_APPROVAL_MAX_AGE: ["900", "0 seconds"],
  DIRECTORY_WRITER_CLIENTS: ["hr-sync", "https://i.example hr sync"],
  ASSERTION_CLIENTS: ["sign-in", "https://i.example sign in"],
  ASSERTION_RATE: ["-1", "6000/min"],
  MAIL_SIGN_IN_URL: ["id.example.com/sign-in", "javascript:alert(1)"],
  PORTAL_URL: ["portal.example.com", "javascript:alert(1)"],
  WEBHOOKS_RETRY_DELAYS: ["1 minute", `1 minute${",5 minutes".repeat(8)}`, `soon${",5 minutes".repeat(7)}`],
  WEBHOOKS_RETRY_JITTER: ["1.5", "-0.1", "10%"],
  WEBHOOKS_TIMEOUT: ["10", "0 seconds", "ten seconds", "61 minutes", "4000 days"],
  WEBHOOKS_PAUSE_FAILING: ["perhaps"],
  WEBHOOKS_SUCCESS_HEADERS: ["perhaps"],
  WEBHOOKS_CA_FILE: ["/nowhere/hunter2.pem", here],
  WEBHOOKS_ALLOWED_CIDRS: ["127.0.0.1/33", "localhost", "10.0.0.0/8,x"],
  WEBHOOKS_RETENTION_DAYS: ["0", "30 days", "3651"],
  WEBHOOKS_DEAD_LETTER_RETENTION_DAYS: ["-1"],
  WEBHOOKS_PER_ACCOUNT: ["0", "many"],
  INTAKE_MEMORY_DAYS: ["0"],
  AUDIT_RETENTION_DAYS: ["89", "3651", "a year"],
  IDENTITY_DIRECTORY: ["on", "Files"],
  KEY_TRANSITION_DEADLINE: ["14", "0 days", "two weeks"],
  OTEL_EXPORTER_OTLP_ENDPOINT: ["localhost:4318"],
  OTEL_EXPORTER_OTLP_HEADERS: ["authorization", "a=%zz", "a b=c"],
  OTEL_EXPORTER_OTLP_PROTOCOL: ["grpc"],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ["localhost:4318"],
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: ["authorization"],
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: ["grpc"],
  OTEL_TRACES_EXPORTER: ["console"],
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ["localhost:4318"],
  OTEL_EXPORTER_OTLP_METRICS_HEADERS: ["authorization"],
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: ["grpc"],
  OTEL_METRICS_EXPORTER: ["console"],
  OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: ["localhost:4318"],
  OTEL_EXPORTER_OTLP_LOGS_HEADERS: ["authorization"],
  OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: ["grpc"],
  OTEL_LOGS_EXPORTER: ["console"],
  OTEL_TRACES_SAMPLER: ["jaeger_remote"],
  OTEL_TRACES_SAMPLER_ARG: ["2", "half"],
  OTEL_SDK_DISABLED: ["yes"],
  OTEL_METRIC_EXPORT_INTERVAL: ["999", "1 minute"],
  // The key's id is another key's.
  LOG_WITNESSES: [
    "https://witness.example.net",
    "witness.example.net+26489759+BEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R https://witness.example.net",
    "witness.example.net+26489758+BEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R ftp://witness.example.net",
    Array(2).fill("witness.example.net+26489758+BEQpkwZQBKoeTEj03QFYGUwCNJvMZkzZbkAOommRio1R https://w.example").join(
      ",",
    ),
  ],
  SIGNAL_TRANSMITTERS: [
    "{}",
    `[{"issuer":"https://id.example","audience":"a"}]`,
    `[{"issuer":"https://id.example","audience":"a","push_token":"short"}]`,
    ...[
      { jwks_uri: "http://id.example/jwks" },
      { issuer: "http://id.example" },
      { algorithms: ["HS256"] },
      { algorithms: ["none"] },
      { poll: { endpoint: "ftp://id.example", token: "t".repeat(32) } },
      { events: { "account-disabled": "release" } },
      { events: { "token-claims-change": "hold" } },
    ].map((wrong) =>
      JSON.stringify([{ issuer: "https://id.example", audience: "a", push_token: "t".repeat(32), ...wrong }])
    ),
    JSON.stringify(Array(2).fill({ issuer: "https://id.example", audience: "a", push_token: "t".repeat(32) })),
    JSON.stringify(["a", "b"].map((name) => ({
      issuer: `https://${name}.example`,
      audience: "a",
      push_token: "t".repeat(32),
    }))),
  ],
  LOG_FORMAT: ["xml"],
  LOG_LEVEL: ["loud"],
  METRICS_PORT: ["0", "70000"],
}

describe("AppConfig", () => {
  it.effect("an empty environment gives the documented defaults", () =>
    Effect.gen(function* () {
      const config = yield* from({})
      assert.deepInclude(config, {
        host: "127.0.0.1",
        port: 8080,
        databaseUrl: null,
        databaseOwnerUrl: null,
        natsUrl: null,
        publicUrl: null,
        demo: true,
        webhooksTimeout: 10_000,
        allowedCidrs: ["127.0.0.0/8", "::1/128"],
        deliveredDays: 30,
        deadLetterDays: 90,
        perAccount: 100,
        intakeMemoryDays: 400,
        auditDays: 400,
        keyTransitionDeadline: 14 * 24 * hour,
        logLevel: "info",
        metricsPort: null,
      })
      assert.deepStrictEqual(config.schedule, {
        delays: [hour / 60, hour / 12, hour / 2, 2 * hour, 6 * hour, 24 * hour, 48 * hour, 72 * hour],
        jitter: 0.1,
      })
      assert.deepStrictEqual(config.roles, new Set(roles))
      assert.isTrue(isAbsolute(config.home))
      assert.isTrue(config.home.endsWith(".bailiwick"))
    }))

  it.effect("an empty variable counts as not set", () =>
    Effect.gen(function* () {
      const names = Object.keys(wrong)
      assert.deepStrictEqual(yield* from(Object.fromEntries(names.map((name) => [name, ""]))), yield* from({}))
    }))

  for (const [name, values] of Object.entries(wrong)) {
    it.effect(`${name}: a wrong value gives one line with the fault and a right example, never the value`, () =>
      Effect.gen(function* () {
        for (const value of values) {
          const faults = yield* faultsOf({ [name]: value })
          assert.lengthOf(faults, 1, value)
          const [line] = faults
          assert.match(line!, new RegExp(`^${name}: (is|has|names) .+, for example ${name}=.+$`))
          const example = line!.slice(line!.lastIndexOf(`${name}=`) + name.length + 1)
          const said = line!.slice(name.length, line!.lastIndexOf(", for example"))
          if (value.length > 4) assert.notInclude(said, value)
          assert.notInclude(line!, "hunter2")
          if (["WEBHOOKS_CA_FILE", "NATS_CREDS", "BRAND_LOGO"].includes(name)) continue
          const trusted = `[{"issuer":"https://id.example.com","jwks_uri":"https://id.example.com/jwks"}]`
          const rest = name === "CONSOLE_ISSUERS"
            ? { MANAGEMENT_ISSUERS: trusted }
            : name.endsWith("_ISSUERS") || name === "PUBLIC_URL"
            ? { DEMO: "false" }
            : {
              ...(name === "SMTP_URL" ? { MAIL_FROM: "no-reply@mail.example" } : {}),
              ...(name === "DATABASE_OWNER_URL" ? { DATABASE_URL: "postgres://db/b" } : {}),
              ...(name === "NATS_REPLICAS" ? { NATS_URL: "nats://127.0.0.1:4222" } : {}),
            }
          yield* from({ [name]: example, ...rest })
        }
      }))
  }

  it.effect("all wrong values are named at once", () =>
    Effect.gen(function* () {
      const env = Object.fromEntries(Object.entries(wrong).map(([name, [value]]) => [name, value!]))
      const faults = yield* faultsOf(env)
      assert.sameMembers(faults.map((line) => line.slice(0, line.indexOf(":"))), Object.keys(wrong))
    }))

  it.effect("right values are read as documented", () =>
    Effect.gen(function* () {
      const config = yield* from({
        ROLES: "api, delivery",
        DATABASE_URL: "postgres://app:hunter2@db/b",
        WEBHOOKS_RETRY_DELAYS: Array.from({ length: 8 }, (_, i) => `${i + 1} seconds`).join(", "),
        WEBHOOKS_RETRY_JITTER: "0",
        WEBHOOKS_TIMEOUT: "1500 millis",
        NATS_URL: "nats://tok%40en@a:4222, nats://b",
        WEBHOOKS_ALLOWED_CIDRS: "10.0.0.0/8 , fd00::/8",
        PORT: "0",
      })
      assert.deepStrictEqual(config.roles, new Set(["api", "delivery"] as const))
      assert.deepStrictEqual(config.schedule, { delays: [1, 2, 3, 4, 5, 6, 7, 8].map((s) => s * 1_000), jitter: 0 })
      assert.deepStrictEqual([config.webhooksTimeout, config.port, config.demo], [1_500, 0, false])
      assert.deepStrictEqual(config.allowedCidrs, ["10.0.0.0/8", "fd00::/8"])
      assert.strictEqual(config.databaseOwnerUrl, null)
      assert.notInclude(JSON.stringify(config) + String(config.databaseUrl), "hunter2")
    }))

  it.effect("settings for an external server are not given to the embedded one", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* faultsOf({ DATABASE_OWNER_URL: "postgres://owner:hunter2@db/b" }), [
        "DATABASE_URL: is needed beside DATABASE_OWNER_URL, for example " +
        "DATABASE_URL=postgres://user:password@127.0.0.1:5432/bailiwick",
      ])
      const [creds] = yield* faultsOf({ NATS_CREDS: here })
      const [replicas] = yield* faultsOf({ NATS_REPLICAS: "3" })
      assert.match(replicas!, /^NATS_URL: is needed beside NATS_REPLICAS, for example NATS_URL=nats:/)
      assert.match(creds!, /^NATS_URL: is needed beside NATS_CREDS, for example NATS_URL=nats:/)
    }))

  it.effect("the console signs in at an issuer that an API trusts, with a secret that no error shows", () =>
    Effect.gen(function* () {
      const issuer = "https://i.example"
      const console = JSON.stringify([{ issuer, client_id: "c", client_secret_file: here }])
      const [line] = yield* faultsOf({ CONSOLE_ISSUERS: console })
      assert.match(
        line!,
        /^CONSOLE_ISSUERS: has an issuer that is in neither MANAGEMENT_ISSUERS nor MAIL_ISSUERS, for /,
      )
      for (const list of ["MANAGEMENT_ISSUERS", "MAIL_ISSUERS"]) {
        const trusted = JSON.stringify([{ issuer, jwks_uri: `${issuer}/jwks` }])
        const { consoleIssuers, demo } = yield* from({ CONSOLE_ISSUERS: console, [list]: trusted })
        assert.isFalse(demo)
        assert.deepInclude(consoleIssuers[0], { issuer, clientId: "c", scope: "openid", name: null, resource: null })
        assert.include(Redacted.value(consoleIssuers[0]!.clientSecret!), "describe(")
        assert.notInclude(JSON.stringify(consoleIssuers), "describe(")
      }
      const loopback = JSON.stringify([{ issuer: "http://127.0.0.1:9/", client_id: "c" }])
      assert.include((yield* faultsOf({ CONSOLE_ISSUERS: loopback }))[0]!, "in neither")
    }))

  it.effect("DEMO is off by default wherever the program is reachable from outside", () =>
    Effect.gen(function* () {
      const issuers = `[{"issuer":"https://i.example","jwks_uri":"https://i.example/jwks"}]`
      const open: ReadonlyArray<Record<string, string>> = [
        { HOST: "0.0.0.0" },
        { HOST: "192.0.2.1" },
        { PUBLIC_URL: "https://mail.example.com" },
        { MAIL_ISSUERS: issuers },
        { MANAGEMENT_ISSUERS: issuers },
        { LIFECYCLE_ISSUERS: issuers },
      ]
      for (const env of open) {
        const config = yield* from(env)
        assert.deepStrictEqual([config.demo, config.allowedCidrs], [false, []], JSON.stringify(env))
        const [line] = yield* faultsOf({ ...env, DEMO: "true" })
        assert.match(line!, /^DEMO: .+, for example /)
      }
      assert.isFalse((yield* from({ DATABASE_URL: "postgres://db/b" })).demo)
      assert.isTrue((yield* from({ DATABASE_URL: "postgres://db/b", DEMO: "true" })).demo)
      assert.isFalse((yield* from({ DEMO: "false" })).demo)
      for (const HOST of ["::1", "localhost"]) assert.isTrue((yield* from({ HOST })).demo)
      assert.deepStrictEqual(["::1", "app_one"].map((host) => originAt({ host, port: 80 })), [
        "http://[::1]:80",
        "http://app_one:80",
      ])
      assert.isTrue((yield* from({ PUBLIC_URL: "http://[::1]:8080/" })).demo)
    }))
})
