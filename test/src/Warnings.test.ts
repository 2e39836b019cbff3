import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { load } from "../../src/AppConfig.ts"
import { warningsOf } from "../../src/AppConfig/Warnings.ts"

const from = (env: Record<string, string>, names = Object.keys(env)) =>
  Effect.map(
    load.pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env))),
    (config) => warningsOf(config, names),
  )

describe("warnings of a configuration", () => {
  it.effect("there are none for the defaults, nor for variables of common programs and platforms", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* from({}), [])
      const others = [
        ...["HOSTNAME", "HOSTS", "PORTS", "PORT_8080", "ROLE", "HOME", "PATH", "LANG", "USER", "SHELL", "TERM", "PWD"],
        ...["MAIL", "MAILCHECK", "MAIL_HOST", "MAIL_PORT", "SMTP_HOST", "SMTP_USER", "NATS_USER", "HTTP_URL"],
        ...["DATABASE_HOST", "DATABASE_NAME", "LOGNAME", "LOG_FILE", "LOG_DIR", "NODE_ENV", "NODE_OPTIONS", "HOSTTYPE"],
        ...["IDENTITY_ENDPOINT", "IDENTITY_HEADER", "CLUSTER_NAME", "METRICS_PATH", "PUBLIC_HOST", "DENO_CERT"],
        ...["OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"],
        ...["BAILIWICK_SERVICE_HOST", "BAILIWICK_SERVICE_PORT", "BAILIWICK_SERVICE_PORT_HTTP", "BAILIWICK_PORT"],
        ...["BAILIWICK_PORT_8080_TCP", "BAILIWICK_PORT_8080_TCP_ADDR", "WEBHOOKS_PORT_443_TCP_PROTO"],
        ...["KUBERNETES_PORT", "XDG_CACHE_HOME", "npm_lifecycle_event", "LIFECYCLE_ISSUER", "LIFECYCLE_TOKEN"],
        "X".repeat(100_000),
      ]
      const told = yield* from({}, others)
      // A variable of examples/product, one letter from ours, and worth a warning.
      assert.deepStrictEqual(told, ["LIFECYCLE_ISSUER is not a variable of bailiwick; did you mean LIFECYCLE_ISSUERS?"])
    }))

  it.effect("a name close to one of ours, or with a prefix of ours, is warned about", () =>
    Effect.gen(function* () {
      const meant = {
        MANAGEMENT_WRITE_RATES: "MANAGEMENT_WRITE_RATE",
        WEBHOOK_TIMEOUT: "WEBHOOKS_TIMEOUT",
        WEBHOOKS_TIMOUT: "WEBHOOKS_TIMEOUT",
        WEBHOOKS_RETRY_DELAY: "WEBHOOKS_RETRY_DELAYS",
        DATABSE_URL: "DATABASE_URL",
        DATABASE_URLS: "DATABASE_URL",
        database_url: "DATABASE_URL",
        PUBILC_URL: "PUBLIC_URL",
        NATS_URLS: "NATS_URL",
        MAIL_ISSUER: "MAIL_ISSUERS",
        LOGLEVEL: "LOG_LEVEL",
        BAILIWCK_HOME: "BAILIWICK_HOME",
        TRANSFER_SAFTY_WINDOW: "TRANSFER_SAFETY_WINDOW",
      }
      assert.deepStrictEqual(
        yield* from({}, Object.keys(meant)),
        Object.entries(meant).map(([name, ours]) => `${name} is not a variable of bailiwick; did you mean ${ours}?`),
      )
      assert.deepStrictEqual(yield* from({}, ["WEBHOOKS_MAX_SIZE", "BAILIWICK_PORTS"]), [
        "WEBHOOKS_MAX_SIZE is not a variable of bailiwick",
        "BAILIWICK_PORTS is not a variable of bailiwick",
      ])
    }))

  it.effect("a port that outgoing connections may use is accepted with a warning", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* from({ PORT: "32767", CLUSTER_PORT: "0", METRICS_PORT: "9464" }), [])
      const lines = yield* from({ PORT: "40000", CLUSTER_PORT: "32768", METRICS_PORT: "65535" })
      assert.deepStrictEqual(lines.map((line) => line.slice(0, line.indexOf(" is a port"))), [
        "PORT: 40000",
        "CLUSTER_PORT: 32768",
        "METRICS_PORT: 65535",
      ])
    }))

  it.effect("without an issuer or DEMO, a warning says that no person can sign in", () =>
    Effect.gen(function* () {
      const issuers = `[{"issuer":"https://i.example","jwks_uri":"https://i.example/jwks"}]`
      for (const env of [{ HOST: "0.0.0.0" }, { DEMO: "false" }, { PUBLIC_URL: "https://mail.example.com" }]) {
        const [line, ...more] = yield* from({ ...env })
        assert.match(line!, /^no caller can sign in: .*MAIL_ISSUERS.*MANAGEMENT_ISSUERS.*LIFECYCLE_ISSUERS/)
        assert.deepStrictEqual(more, [])
        assert.deepStrictEqual(yield* from({ ...env, ROLES: "delivery" }), [])
        for (const name of ["MAIL_ISSUERS", "MANAGEMENT_ISSUERS", "LIFECYCLE_ISSUERS"]) {
          assert.deepStrictEqual(yield* from({ ...env, [name]: issuers }), [])
        }
      }
    }))
})
