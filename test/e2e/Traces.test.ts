import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { decodeJwt } from "jose"
import { randomBytes, randomUUID } from "node:crypto"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { app } from "../../src/App.ts"
import { load } from "../../src/AppConfig.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { telemetry } from "../../src/Telemetry.ts"
import { send } from "../src/http/identity/IdentityClient.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { institution, link, member, owner, person, project } from "../support/TestIdentity.ts"
import { serviceTokenFor, tokenFor } from "../support/TestTokens.ts"
import { until } from "./support/Until.ts"

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: unknown }>
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
}

/** A collector of OTLP over HTTP, in JSON (OpenTelemetry Protocol 1.x): the received spans, and all received bytes. */
const collector = Effect.gen(function* () {
  const spans: Array<Span> = []
  const texts: Array<string> = []
  const server = createServer((request, response) => {
    const parts: Array<Uint8Array> = []
    request.on("data", (part) => parts.push(part))
    request.on("end", () => {
      const text = Buffer.concat(parts).toString()
      texts.push(text)
      if (request.url === "/v1/traces") {
        for (const { scopeSpans } of JSON.parse(text).resourceSpans) {
          for (const scope of scopeSpans) spans.push(...scope.spans)
        }
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve()))),
  )
  return { spans, texts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
})

const publicUrl = "http://127.0.0.1:8080"

/** The whole program in this process, which exports to the collector. */
const traced = (otlp: string, metricsPort: number) =>
  Layer.unwrap(Effect.gen(function* () {
    const { ownerUrl, url } = yield* TestDatabase
    const bus = yield* TestBus.make
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-traces-"))),
      (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true })),
    )
    const settings = {
      DEMO: "true",
      PORT: "0",
      PUBLIC_URL: publicUrl,
      ROLES: "api,relay,lifecycle",
      LOG_LEVEL: "error",
      OTEL_EXPORTER_OTLP_ENDPOINT: otlp,
      BAILIWICK_HOME: home,
      METRICS_PORT: String(metricsPort),
    }
    const provider = ConfigProvider.fromUnknown(settings)
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    const places = { home, database: { url, ownerUrl, embedded: false }, natsUrl: bus.url }
    return app(config, places).pipe(
      Layer.provideMerge(EmbeddedIssuer.layer({ home, issuer: new URL("/dev/issuer", publicUrl).href })),
      Layer.provide(telemetry(config)),
    )
  })).pipe(Layer.provideMerge(TestDatabase.layer), Layer.orDie)

/** Approves a grant, in a trace of the caller's, and follows its event to the acknowledgement. */
const walk = Effect.fnUntraced(function* (traceparent: string, metricsPort: number) {
  const { sql } = yield* Database
  const { issuer } = yield* EmbeddedIssuer
  const fern = yield* institution()
  const [olga, ada] = [yield* person(), yield* person()]
  yield* member(fern, ada, "administrator")
  const portal = yield* project(fern)
  yield* owner(portal, olga)
  yield* link(portal, "1")
  const clientId = `client-${randomUUID()}`
  const { propose } = yield* ServiceGrants
  const { id } = yield* run(propose({
    personId: olga,
    projectId: portal,
    service_id: clientId,
    service_issuer: issuer,
    environment: "production",
    capabilities: ["events.read", "cursor.acknowledge"],
    reason: "to keep in step",
  }))
  const token = yield* tokenFor(ada)
  const approved = yield* send(
    "POST",
    `/v1/projects/${portal}/lifecycle-service-grants/${id}/approve`,
    { authorization: `Bearer ${token}`, "idempotency-key": randomUUID(), traceparent },
    { expected_version: 1, reason: "looked at it myself" },
  )
  assert.strictEqual(approved.status, 200, approved.text)
  const service = yield* serviceTokenFor(clientId, { audience: "service-lifecycle" })
  const headers = { authorization: `Bearer ${service}` }
  const path = `/v1/projects/${portal}/lifecycle`
  const [head] = yield* sql<{ position: bigint }>`select position from lifecycle_heads where project_id = ${portal}`
  let cursor = btoa("1.0").replace(/=+$/, "")
  let last = ""
  for (let seen = 0; seen < Number(head!.position);) {
    const { body } = yield* send("GET", `${path}/events?after=${cursor}&wait=30`, headers)
    seen += body.items.length
    cursor = body.cursor
    last = body.items.at(-1)?.set ?? last
  }
  const [event] = Object.values(decodeJwt(last)["events"] as Record<string, { lifecycle: { digest: string } }>)
  const acknowledged = yield* send("POST", `${path}/acknowledgements`, headers, {
    cursor,
    installed_version: "1",
    chain_head: event!.lifecycle.digest,
  })
  assert.strictEqual(acknowledged.status, 200, acknowledged.text)
  const [row] = yield* sql<{ traceparent: string | null }>`
    select headers ->> 'traceparent' as traceparent from outbox where aggregate_id = ${portal} order by seq desc limit 1`
  yield* until(
    "all of it published",
    sql<{ unpublished: number }>`
      select count(*)::int as unpublished from outbox where aggregate_id = ${portal} and published_at is null`,
    ([found]) => found!.unpublished === 0,
  )
  const metrics = yield* Effect.promise(() =>
    fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((answer) => answer.text())
  )
  return { metrics, ada, portal, header: row!.traceparent, told: [token, service], set: last }
})

it.live("one trace and four measures lead from a decision's request to its acknowledgement, without a secret", () =>
  Effect.gen(function* () {
    const { spans, texts, url } = yield* collector
    const trace = randomBytes(16).toString("hex")
    const began = `00-${trace}-${randomBytes(8).toString("hex")}-01`
    // Unsent spans go out when the program stops.
    const metricsPort = yield* freePort()
    const { ada, header, metrics, portal, set, told } = yield* walk(began, metricsPort).pipe(
      Effect.provide(traced(url, metricsPort)),
      Effect.scoped,
    )
    assert.match(header!, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`))
    const ours = spans.filter(({ traceId }) => traceId === trace)
    const named = (name: string) => ours.filter((span) => span.name === name)
    const approve = named("POST /v1/projects/{project_id}/lifecycle-service-grants/{grant_id}/approve")
    assert.lengthOf(approve, 1, ours.map(({ name }) => name).join("\n"))
    assert.strictEqual(approve[0]!.parentSpanId, began.split("-")[2])
    const ids = new Set(ours.map(({ spanId }) => spanId))
    for (const name of ["lifecycle.sign", "lifecycle.publish", "lifecycle.deliver", "lifecycle.acknowledge"]) {
      assert.lengthOf(named(name), 1, name)
      assert.isTrue(ids.has(named(name)[0]!.parentSpanId!), name)
    }
    // The request that delivered the event is a trace of its own: linked, not adopted.
    const [acknowledge] = named("lifecycle.acknowledge")
    assert.isTrue(spans.some(({ spanId, traceId }) => spanId === acknowledge!.links[0]?.spanId && traceId !== trace))

    const counted = (name: string, labels = "") =>
      Number(new RegExp(`^bailiwick_${name}_seconds_count${labels} (\\d+)$`, "m").exec(metrics)?.[1])
    for (
      const [name, labels] of [
        ["lifecycle_decision_to_signed"],
        ["outbox_published", '{stream="LIFECYCLE"}'],
        ["lifecycle_decision_to_delivered", '{way="cursor"}'],
        ["lifecycle_decision_to_acknowledged"],
      ] as const
    ) assert.isAbove(counted(name, labels), 0, `${name}\n${metrics}`)
    assert.notInclude(metrics, portal)

    const everything = texts.join("\n")
    for (const secret of [...told, set, "@example.com", `/v1/projects/${portal}`, "looked at it myself"]) {
      assert.notInclude(everything, secret)
    }
    assert.notInclude(everything, `${ada}@`)
  }).pipe(Effect.scoped))
