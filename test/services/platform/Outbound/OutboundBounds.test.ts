/** The caches of Outbound for users' URLs, names and hosts are bounded. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { sizeOf } from "../../../support/SizeOf.ts"
import { outboundOf } from "./OutboundOf.ts"
import { makeAuthority } from "./Certificates.ts"
import { serve, serveNames } from "./LoopbackServers.ts"

it.live("at most 8,192 checked URLs are cached, and a URL that left the cache is checked again", () =>
  Effect.gen(function* () {
    const { hostKey } = yield* outboundOf()
    for (let n = 0; n < 10_000; n++) assert.strictEqual(hostKey(`https://h${n}.test/`), `h${n}.test:443`)
    assert.strictEqual(yield* sizeOf("checked URLs"), 8_192)
    assert.strictEqual(hostKey("https://h0.test/"), "h0.test:443")
  }).pipe(Effect.scoped))

it.live("at most 1,024 names and origins are cached", () =>
  Effect.gen(function* () {
    const names = yield* serveNames((_, family) => family === 4 ? ["127.0.0.1"] : [])
    const authority = makeAuthority("Bailiwick test authority")
    const server = yield* serve((_, response) => response.end(), { tls: authority.issue("*.hook.test") })
    const outbound = yield* outboundOf({
      nameservers: [names.nameserver],
      certificateAuthorities: [authority.certificate],
    })
    const post = async (n: number) => {
      for (let tries = 1;; tries++) {
        const sent = await outbound.send(`https://h${n}.hook.test:${server.port}/`)
        // A lookup has two seconds: beside other tests, a batch of handshakes may take these.
        if (sent.error !== "dns" || tries === 10) return sent
      }
    }
    for (let from = 0; from < 1_200; from += 10) {
      const sent = yield* Effect.promise(() => Promise.all(Array.from({ length: 10 }, (_, n) => post(from + n))))
      for (const { error } of sent) assert.isNull(error)
    }
    assert.strictEqual(yield* sizeOf("resolved names"), 1_024)
    assert.isAtMost(yield* sizeOf("origins, checked"), 1_024)
    assert.isAtMost(yield* sizeOf("connections, checked"), 1_024)
    assert.strictEqual(yield* sizeOf("names of connections"), 1_024)
    assert.strictEqual(yield* sizeOf("hosts of private authorities, checked"), 1_200)
  }).pipe(Effect.scoped))

it.live("names that do not resolve are not cached", () =>
  Effect.gen(function* () {
    const names = yield* serveNames(() => null)
    const outbound = yield* outboundOf({ nameservers: [names.nameserver] })
    const sent = yield* Effect.promise(() =>
      Promise.all(Array.from({ length: 50 }, (_, n) => outbound.send(`https://gone${n}.test/`)))
    )
    for (const { error } of sent) assert.strictEqual(error, "dns")
    assert.strictEqual(yield* sizeOf("resolved names"), 0)
  }).pipe(Effect.scoped))

it.live("a host of a private authority is cached once, also after several requests", () =>
  Effect.gen(function* () {
    const authority = makeAuthority("Bailiwick test authority")
    const server = yield* serve((_, response) => response.writeHead(200, { connection: "close" }).end(), {
      tls: authority.issue("localhost"),
    })
    const outbound = yield* outboundOf({ certificateAuthorities: [authority.certificate] })
    for (let n = 0; n < 5; n++) {
      assert.strictEqual((yield* outbound.sent(`https://localhost:${server.port}/${n}`)).status, 200)
    }
    assert.strictEqual(yield* sizeOf("hosts of private authorities, checked"), 1)
  }).pipe(Effect.scoped))
