/** A broker that speaks TLS only: used where the runtime knows its authority, else refused. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { brokerWith } from "../services/platform/messaging/OwnBroker.ts"
import { makeAuthority } from "../services/platform/Outbound/Certificates.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { api } from "./support/ApiClient.ts"
import { cli, instance } from "./support/ProgramInstance.ts"
import { until } from "./support/Until.ts"
import { accountLine } from "./support/ProgramFixture.ts"

describe("a broker with TLS", () => {
  it.live(
    "is used if its authority is known, and refused otherwise",
    () =>
      Effect.gen(function* () {
        const home = yield* emptyHome
        const file = (name: string, text: string) => {
          writeFileSync(join(home, name), text)
          return join(home, name)
        }
        const authority = makeAuthority("Brokers")
        const issued = authority.issue("localhost")
        const broker = yield* brokerWith({
          tls: { cert: file("cert.pem", issued.cert), key: file("key.pem", issued.key) },
        })
        yield* broker.start
        const database = yield* TestDatabase.make
        const untrusting = {
          BAILIWICK_HOME: home,
          PORT: "0",
          DATABASE_URL: Redacted.value(database.url),
          DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
          NATS_URL: Redacted.value(broker.url).replace("nats:", "tls:").replace("127.0.0.1", "localhost"),
          LOG_FORMAT: "json",
          LOG_LEVEL: "warn",
        }
        const ca = file("ca.pem", authority.certificate)
        const trusting = { ...untrusting, DENO_CERT: ca, NODE_EXTRA_CA_CERTS: ca }
        const program = yield* instance(untrusting)
        const readiness = (status: string) =>
          Effect.map(
            until(status, api(program.origin).get("/ready"), ({ json }) => json.status === status),
            ({ json }) => json.checks.event_bus,
          )
        yield* program.start()
        yield* until("a warning", Effect.sync(program.output), (said) => /verify the first certificate/.test(said))
        assert.strictEqual(yield* readiness("degraded"), "fail")
        yield* program.end("SIGTERM")

        yield* program.start(trusting)
        assert.strictEqual(yield* readiness("ready"), "ok")
        const id = randomUUID()
        const line = file("account.ndjson", accountLine(id))
        const { code, output } = yield* cli(trusting, "publish", "intake.v1.directory.account", line)
        assert.strictEqual(code, 0, output)
      }),
    240_000,
  )
})
