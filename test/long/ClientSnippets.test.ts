/**
 * The client's package as a consumer has it: packed, installed into an empty folder, every snippet of its README run on
 * each runtime against a running program.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { client, problems } from "../../sdk/client/Client.ts"
import { clientRuntimes, clientSnippets, installClient } from "../support/ClientPackage.ts"
import { home, start } from "../support/Processes.ts"
import { fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { type Arrival, receiver } from "../e2e/support/Receiver.ts"
import { until } from "../e2e/support/Until.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/long/ClientSnippets/Around") {
  static readonly layer = Layer.effect(Around, fixture())
}

const snippets = clientSnippets()

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Runs each snippet in turn for a fresh account, whose webhook's request the last one verifies. */
const journey = Effect.fnUntraced(function* (empty: string, command: ReadonlyArray<string>) {
  const { account, feed, instance, tls } = yield* Around
  const { id, key } = yield* account()
  const target = yield* receiver(tls)
  const path = `/${randomUUID()}`
  const port = yield* freePort
  const begin = (n: number, env: Readonly<Record<string, string>> = {}) => {
    const file = join(empty, `${randomUUID()}.mts`)
    writeFileSync(file, snippets[n]!.replace("9000", String(port)))
    const own = { BAILIWICK_URL: instance.origin(), BAILIWICK_KEY: key, RECEIVER_URL: target.url(path) }
    return start({ command, module: file, cwd: empty, env: { ...own, ...env } })
  }
  const output = Effect.fnUntraced(function* (n: number) {
    const program = yield* begin(n)
    assert.strictEqual(yield* program.exited, 0, program.output())
    return program.output()
  })
  const [, secret] = /(whsec_\S+)/.exec(yield* output(0))!
  target.trust(path, secret!)
  yield* output(1)
  yield* feed.publish("intake.v1.mail-events.bounced", JSON.stringify(mailEvent(id, "e-1", "email.bounced")))
  const arrived = yield* until("deliveries", Effect.sync(() => target.at(path)), (all) => all.length >= 2)
  const real = arrived.find(({ body }) => body.includes("e-1"))!
  assert.match(yield* output(2), /body\.name .+/)
  const listed = yield* until("the list", output(3), (text) => text.match(/delivered/g)?.length === 3)
  assert.match(listed, /email\.bounced delivered/)
  assert.match(yield* output(4), /^counts \d+$/m)
  const verifier = yield* begin(5, { WEBHOOK_SECRET: secret! })
  const post = (body: string, { headers }: Arrival) =>
    Effect.promise(() =>
      fetch(`http://127.0.0.1:${port}/`, {
        method: "POST",
        body,
        headers: Object.fromEntries(
          Object.entries(headers).filter(([name]) => name.includes("webhook")).map((
            [name, value],
          ) => [name, String(value)]),
        ),
      }).then(({ status }) => status, () => 0)
    )
  assert.strictEqual(yield* until("the receiver", post(real.body, real), (status) => status !== 0), 204)
  yield* verifier.line(/email\.bounced e-1@example\.com/)
  assert.strictEqual(yield* post(real.body.replace("e-1", "e-2"), real), 401)
})

layer(Around.layer, { excludeTestServices: true, timeout: "4 minutes" })("the client's package", (it) => {
  it.effect("every snippet of its README works on each runtime", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const { consumer } = yield* Effect.promise(() => installClient(folder))
      for (const [, command] of clientRuntimes()) yield* journey(consumer, command)
    }))

  it.effect("follows pages to the end, each item once", () =>
    Effect.gen(function* () {
      const { account, instance, tls } = yield* Around
      const { key } = yield* account()
      const target = yield* receiver(tls)
      const api = client({ url: instance.origin(), token: key })
      yield* Effect.promise(async () => {
        const body = { url: target.url("/pages"), events: ["email.sent"] } as const
        const { id } = await api.post("/v1/webhooks/", { body })
        const params = { webhook_id: id }
        for (const _ of [1, 2, 3]) await api.post("/v1/webhooks/{webhook_id}/test", { params })
        const { items: all } = await api.get("/v1/webhook-deliveries")
        assert.strictEqual(all.length, 3)
        const seen: Array<string> = []
        for await (const one of api.items("/v1/webhook-deliveries", { query: { limit: 1 } })) seen.push(one.id)
        assert.deepStrictEqual(seen, all.map(({ id }) => id))
        const sizes: Array<number> = []
        const numbered = api.pages("/v1/webhooks/{webhook_id}/deliveries", { params, query: { limit: 2 } })
        for await (const { items } of numbered) sizes.push(items.length)
        assert.deepStrictEqual(sizes, [2, 1])
        const error = await api.get("/v1/webhooks/{webhook_id}", { params: { webhook_id: randomUUID() } })
          .catch((error: unknown) => error)
        assert.instanceOf(error, problems.not_found)
      })
    }))

  it.effect("a stream of notifications goes on after a lost connection, without a gap or a repetition", () =>
    Effect.gen(function* () {
      const { account, feed, instance } = yield* Around
      const { id, key } = yield* account()
      const connections: Array<{ readonly lost: AbortController; readonly resumed: string | null }> = []
      const broken: typeof fetch = (url, init) => {
        const lost = new AbortController()
        connections.push({ lost, resumed: new Headers(init!.headers).get("last-event-id") })
        return fetch(url, { ...init, signal: AbortSignal.any([init!.signal!, lost.signal]) })
      }
      const over = new AbortController()
      const stream = client({ url: instance.origin(), token: key, fetch: broken }).notifications({
        signal: over.signal,
      })
      const publish = (title: string) =>
        feed.publish(
          "intake.v1.notifications",
          JSON.stringify({
            id: randomUUID(),
            account_id: id,
            category: "alerts",
            severity: "info",
            title,
            body: "",
            href: "/",
          }),
        )
      const titles: Array<string> = []
      const seen = (title: string) =>
        Effect.promise(async () => {
          while (titles.at(-1) !== title) {
            const { value } = await stream.next()
            if (value?.event === "notification") titles.push(value.notification.title)
          }
        })
      assert.strictEqual((yield* Effect.promise(() => stream.next())).value?.event, "counts")
      yield* publish("one")
      yield* seen("one")
      const before = connections.length
      connections.at(-1)!.lost.abort()
      yield* publish("two")
      yield* seen("two")
      // An account's new API key is announced as well.
      assert.deepStrictEqual(titles.filter((title) => ["one", "two"].includes(title)), ["one", "two"])
      assert.isAbove(connections.length, before)
      assert.isNotNull(connections.at(-1)!.resumed)
      over.abort()
      const ended = yield* Effect.promise(async () => {
        try {
          for await (const event of stream) assert.isDefined(event.id)
        } catch (error) {
          return error
        }
      })
      assert.strictEqual(ended, over.signal.reason)
      const stranger = client({ url: instance.origin(), token: "mail_k_none" }).notifications()
      const refused = yield* Effect.promise(() => stranger.next().catch((error: unknown) => error))
      assert.instanceOf(refused, problems.invalid_credentials)
    }))
})
