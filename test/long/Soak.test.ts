/**
 * The program's memory does not grow with its work: the live heap after each step of a load, and after a minute of
 * rest, on Deno and on Node 24. Each step brings new accounts, keys, webhooks, people, tokens and paths, so that state
 * kept by account, token or path would show.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import process from "node:process"
import { promisify } from "node:util"
import { demoIdentityIds, demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"
import { until } from "../e2e/support/Until.ts"
import { accountLine, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"

const publicUrl = "http://127.0.0.1:8080"
const steps = 5
const deliveriesPerStep = 8_000
const accountsPerStep = 30
const atOnce = 8
const restSeconds = 60

/**
 * Bytes by which the live heap may grow after the second step, when code is compiled and pools are full: at the last
 * step, with state that is dropped within a minute (actors, tokens), and after the rest, without it. On Deno without
 * src/process/HideAsyncHooks.ts it was 7.8 and 7.0 MB; with it 3.9 and 1.3 (3.3 after half as many deliveries; on Node
 * 24 4.0 and 2.4).
 */
const growthUnderLoad = 6_000_000
const growthAfterRest = 5_500_000
/** Bytes that a minute of rest itself may add. */
const growthAtRest = 1_000_000

interface Look {
  readonly heap: number
  readonly rss: number
}

const megabytes = (looks: ReadonlyArray<Look>, of: keyof Look) =>
  looks.map((look) => (look[of] / 1e6).toFixed(1)).join(", ")

/** A receiver that keeps nothing but a count. */
const counting = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly count: () => number; readonly close: () => void }>((resume) => {
    let count = 0
    const server = createServer((request, response) => {
      request.resume().on("end", () => {
        count++
        response.writeHead(204).end()
      })
    })
    const close = () => {
      server.close()
      server.closeAllConnections()
    }
    server.listen(0, "127.0.0.1", () => {
      resume(Effect.succeed({ port: (server.address() as AddressInfo).port, count: () => count, close }))
    })
  }),
  ({ close }) => Effect.sync(close),
)

const people = (at: ProgramFixture, issuer: EmbeddedIssuer["Service"]) =>
  Effect.fnUntraced(function* (n: number) {
    const id = `soak-${n}`
    const line = { kind: "person", id, version: 1, issuer: demoIssuer, subject: id, status: "active", display_name: id }
    yield* at.feed.publish("intake.v1.identity-directory.person", JSON.stringify(line))
    const token = (sid: string) =>
      issuer.mintAccessToken({ issuer: demoIssuer, subject: id, clientId: "portal", sid, acr: "urn:service:aal2" })
    const first = api(at.instance.origin, { authorization: `Bearer ${yield* token(`${id} a`)}` })
    yield* until(`${id} signed in`, first.get("/v1/me"), ({ status }) => status === 200)
    for (const sid of ["b", "c"]) {
      const as = api(at.instance.origin, { authorization: `Bearer ${yield* token(`${id} ${sid}`)}` })
      for (const path of ["/v1/me", "/v1/me/sessions", `/v1/projects/${randomUUID()}`]) yield* as.get(path)
      const headers = { "idempotency-key": randomUUID() }
      yield* as.post("/v1/me/access-requests", { project_id: demoIdentityIds.fernPortal, reason: id }, { headers })
    }
  })

/** A new account with a key and a webhook at a path of its own, and requests of many kinds; returns its id. */
const accounts = (at: ProgramFixture, issuer: EmbeddedIssuer["Service"], port: number) =>
  Effect.fnUntraced(function* () {
    const id = randomUUID()
    yield* at.feed.publish("intake.v1.directory.account", accountLine(id))
    const session = api(at.instance.origin, { cookie: `mail_session=${yield* issuer.mintSession({ accountId: id })}` })
    yield* until("the account", session.get("/v1/api-keys/"), ({ status }) => status === 200)
    const { json: { key } } = yield* session.post("/v1/api-keys/", { name: "soak" })
    const own = api(at.instance.origin, { authorization: `Bearer ${key}` })
    const url = `http://127.0.0.1:${port}/${id}`
    const made = yield* own.post("/v1/webhooks/", { url, events: ["email.delivered"] })
    assert.strictEqual(made.status, 201, made.text)
    // Through its actor, once for each.
    yield* own.patch(`/v1/webhooks/${made.json.id}`, { url: `${url}/changed` })
    for (const path of [`/v1/webhooks/${made.json.id}`, `/v1/webhooks/${randomUUID()}`, `/v1/${id}`]) {
      yield* own.get(path)
    }
    const stranger = api(at.instance.origin, { authorization: `Bearer mail_k_${randomBytes(32).toString("hex")}` })
    yield* stranger.get(`/v1/webhooks/?${id}`)
    return id
  })

/** Loads the program once; returns when everything has arrived. */
const step = Effect.fnUntraced(function* (at: ProgramFixture, issuer: EmbeddedIssuer["Service"], receiver: {
  readonly port: number
  readonly count: () => number
}, n: number) {
  const numbers = Array.from({ length: accountsPerStep }, (_, i) => n * accountsPerStep + i)
  const [ids] = yield* Effect.all([
    Effect.forEach(numbers, accounts(at, issuer, receiver.port), { concurrency: atOnce }),
    Effect.forEach(numbers, people(at, issuer), { concurrency: atOnce }),
  ], { concurrency: 2 })
  const wanted = receiver.count() + deliveriesPerStep
  for (let sent = 0; sent < deliveriesPerStep; sent += 500) {
    const events = Array.from({ length: 500 }, (_, i) => mailEvent(ids[i % ids.length]!, String(sent + i)))
    assert.lengthOf(yield* at.feed.events(events), events.length)
  }
  yield* until("every delivery", Effect.sync(receiver.count), (count) => count >= wanted, 180)
})

const soak = Effect.fnUntraced(function* (command: ReadonlyArray<string>) {
  const port = yield* Effect.orDie(freePort())
  const at = yield* fixture(
    {
      DEMO: "true",
      MAIL_ISSUERS: "",
      PUBLIC_URL: publicUrl,
      PORT: String(port),
      LOG_LEVEL: "error",
      // All strangers of the load have one address, which new keys come from as well.
      REFUSED_CREDENTIALS_RATE: "0",
    },
    { module: "test/long/support/ProbedMain.ts", command },
  )
  const { program } = at.instance
  let looks = 0
  const look = Effect.gen(function* () {
    looks++
    yield* program().kill("SIGUSR2")
    const all = new RegExp(`(?:live heap (\\d+) rss (\\d+)\\n[^]*?){${looks}}`)
    const [, heap, rss] = yield* program().line(all)
    return { heap: Number(heap), rss: Number(rss) }
  })
  const receiver = yield* counting
  return yield* Effect.gen(function* () {
    const issuer = yield* EmbeddedIssuer
    const loaded: Array<Look> = []
    for (let n = 0; n < steps; n++) {
      yield* step(at, issuer, receiver, n)
      loaded.push(yield* look)
    }
    const before = yield* look
    // The rest itself is measured: nothing happens meanwhile that could be waited for.
    yield* Effect.sleep(`${restSeconds} seconds`)
    return { loaded, before, after: yield* look }
  }).pipe(Effect.provide(EmbeddedIssuer.layer({ home: at.home, issuer: `${publicUrl}/dev/issuer` })))
}, Effect.scoped)

const node24 = Effect.map(
  Effect.promise(() =>
    promisify(execFile)("npx", ["-y", "-p", "node@24.21.0", "-c", "command -v node"], { timeout: 120_000 })
  ),
  ({ stdout }) => [stdout.trim(), "--expose-gc"],
)

const deno = Effect.succeed([
  process.execPath,
  ...["run", "-A", "--node-modules-dir=manual", "--no-lock", "--v8-flags=--expose-gc"],
])

const runtimes = [["Deno", deno], ["Node 24", node24]] as const

/** Both at once: each measures its own heap, and most of its time is a rest. */
describe.concurrent("the live heap", () => {
  for (const [name, command] of runtimes) {
    it.live.skipIf(name === "Deno" && !("Deno" in globalThis))(
      `grows by at most ${growthUnderLoad / 1_000_000} MB over ${
        steps * deliveriesPerStep
      } deliveries and a rest, on ${name}`,
      () =>
        Effect.gen(function* () {
          const { after, before, loaded } = yield* soak(yield* command)
          const [first, last] = [loaded[1]!, loaded.at(-1)!]
          const all = [...loaded, before, after]
          const shown = `live heap ${megabytes(all, "heap")}; resident ${megabytes(all, "rss")}`
          console.log(`MB on ${name}, after each step, before and after the rest: ${shown}`)
          assert.isAtMost(last.heap - first.heap, growthUnderLoad, `under load: ${shown}`)
          assert.isAtMost(after.heap - before.heap, growthAtRest, `at rest: ${shown}`)
          assert.isAtMost(after.heap - first.heap, growthAfterRest, `after the rest: ${shown}`)
        }),
    )
  }
})
