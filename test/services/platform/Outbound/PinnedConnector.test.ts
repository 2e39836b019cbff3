/** Which peers Outbound connects to: names, addresses and certificates. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Outbound, type OutboundConfig } from "../../../../services/platform/Outbound.ts"
import { make } from "../../../../services/platform/Outbound/PinnedConnector.ts"
import { makeAuthority } from "./Certificates.ts"
import { serve, serveNames, type Zone } from "./LoopbackServers.ts"

const authority = makeAuthority("Bailiwick test authority")
const tls = authority.issue("hook.test", "localhost")

const outboundOf = (config: Partial<OutboundConfig>) =>
  Effect.map(
    Layer.build(Outbound.layer({
      allowedCidrs: [],
      certificateAuthorities: [authority.certificate],
      timeoutMillis: 10_000,
      ownPorts: [],
      ...config,
    })),
    (context) => {
      const outbound = Context.get(context, Outbound)
      return (url: string) => Effect.promise(() => post(outbound, url))
    },
  )

const post = (outbound: Outbound["Service"], url: string) =>
  outbound.post({ url, headers: {}, body: "{}", keepOnSuccess: 100, keepOnFailure: 100 })

const receiver = (options: { readonly host?: string; readonly tls?: typeof tls } = { tls }) =>
  serve((_, response) => response.writeHead(200, { connection: "close" }).end("ok"), options)

describe("a name", () => {
  const setUp = Effect.fnUntraced(function* (zone: Zone, allowedCidrs: ReadonlyArray<string>) {
    const server = yield* receiver()
    const names = yield* serveNames(zone)
    const send = yield* outboundOf({ allowedCidrs, nameservers: [names.nameserver] })
    return { server, names, sent: send(`https://hook.test:${server.port}/`) }
  })

  it.effect("is connected to when its address is allowed", () =>
    Effect.gen(function* () {
      const { names, sent, server } = yield* setUp((_, family) => family === 4 ? ["127.0.0.1"] : [], ["127.0.0.1/32"])
      assert.deepInclude(yield* sent, { status: 200, error: null })
      assert.strictEqual(server.requests.length, 1)
      assert.sameMembers(names.questions, ["hook.test 4", "hook.test 6"])
    }))

  it.effect("may end in a dot, which neither the certificate's check nor the peer sees", () =>
    Effect.gen(function* () {
      const server = yield* receiver()
      const names = yield* serveNames((_, family) => family === 4 ? ["127.0.0.1"] : [])
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.1/32"], nameservers: [names.nameserver] })
      assert.deepInclude(yield* send(`https://HOOK.test.:${server.port}/`), { status: 200, error: null })
      assert.strictEqual(server.requests[0]!.headers.host, `hook.test:${server.port}`)
    }))

  const refused: ReadonlyArray<readonly [what: string, zone: Zone]> = [
    ["its address is private", () => ["127.0.0.1"]],
    ["one of its two addresses is private", (_, family) => family === 4 ? ["127.0.0.1", "127.0.0.2"] : []],
    ["the private one comes first", (_, family) => family === 4 ? ["10.0.0.1", "127.0.0.1"] : []],
    ["an IPv6 address beside the allowed one is private", (_, family) => family === 4 ? ["127.0.0.1"] : ["fd00::1"]],
    ["an IPv6 address is a private IPv4 one", (_, family) => family === 4 ? [] : ["::ffff:127.0.0.2"]],
    ["it is the metadata service", (_, family) => family === 4 ? ["169.254.169.254"] : []],
  ]
  for (const [index, [what, zone]] of refused.entries()) {
    it.effect(`is refused when ${what}`, () =>
      Effect.gen(function* () {
        const { sent, server } = yield* setUp(zone, index === 0 ? [] : ["127.0.0.1/32", "169.254.0.0/16"])
        assert.deepInclude(yield* sent, { status: null, error: "blocked_address" })
        assert.strictEqual(server.seen.connections, 0)
      }))
  }

  it.effect("fails as dns when it does not exist or has no address", () =>
    Effect.gen(function* () {
      for (const answer of [null, []]) {
        const { sent } = yield* setUp(() => answer, ["127.0.0.0/8"])
        assert.deepInclude(yield* sent, { status: null, error: "dns" })
      }
    }))

  it.effect("fails as dns after about two seconds of silence, by the resolver's own clock", () =>
    Effect.gen(function* () {
      const before = performance.now()
      const { names, sent } = yield* setUp(() => undefined, ["127.0.0.0/8"])
      assert.deepInclude(yield* sent, { status: null, error: "dns" })
      assert.isAtLeast(names.questions.length, 4, "two families, two tries")
      assert.isBelow(performance.now() - before, 10_000)
    }))

  it.effect("that changes its answer is connected to at the checked address, and checked again", () =>
    Effect.gen(function* () {
      const inner = yield* receiver({ tls, host: "127.0.0.2" })
      const outer = yield* serve((_, response) => response.writeHead(200, { connection: "close" }).end(), { tls })
      let questions = 0
      // The first answer is allowed; the second one is a private address.
      const names = yield* serveNames((_, family) =>
        family === 6 ? [] : [questions++ === 0 ? "127.0.0.1" : "127.0.0.2"]
      )
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.1/32"], nameservers: [names.nameserver] })

      assert.deepInclude(yield* send(`https://hook.test:${outer.port}/`), { status: 200, error: null })
      assert.strictEqual(questions, 1, "one question for the check and the connection")
      assert.deepInclude(yield* send(`https://hook.test:${outer.port}/`), { status: 200 }, "cached for 5 s")
      assert.strictEqual(questions, 1)
      yield* TestClock.adjust("6 seconds")
      assert.deepInclude(yield* send(`https://hook.test:${inner.port}/`), { status: null, error: "blocked_address" })
      assert.strictEqual(questions, 2)
      assert.strictEqual(inner.seen.connections, 0)
    }))

  it.effect("localhost is loopback without a lookup", () =>
    Effect.gen(function* () {
      const server = yield* receiver({})
      const names = yield* serveNames(() => ["10.0.0.1"])
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.0/8"], nameservers: [names.nameserver] })
      for (const host of ["localhost", "LOCALHOST."]) {
        assert.deepInclude(yield* send(`http://${host}:${server.port}/`), { status: 200, error: null }, host)
      }
      assert.deepStrictEqual(names.questions, [])
    }))
})

describe("the peer's address", () => {
  it.effect("is checked after connecting, also for a literal", () =>
    Effect.gen(function* () {
      const server = yield* receiver({})
      const checked: Array<string> = []
      const connect = yield* make({
        checked: {
          resolve: () => Promise.reject(new Error("a literal is not looked up")),
          policy: { allowsHttp: () => false, allowsPort: () => true, allows: (address) => checked.push(address) < 0 },
        },
        authorities: [],
        timeoutMillis: 10_000,
      })
      const target = {
        hostname: "127.0.0.1",
        host: `127.0.0.1:${server.port}`,
        protocol: "http:",
        port: `${server.port}`,
      }
      const error = yield* Effect.callback<Error | null>((resume) =>
        connect(target, (...made) => resume(Effect.succeed(made[0])))
      )
      assert.strictEqual(error?.message, "blocked_address")
      assert.deepStrictEqual(checked, ["127.0.0.1"])
      assert.strictEqual(server.requests.length, 0)
    }))
})

describe("a literal", () => {
  const disguises = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "[::ffff:127.0.0.1]", "localhost."]

  for (const host of disguises) {
    it.effect(`${host} is refused before any connection`, () =>
      Effect.gen(function* () {
        const server = yield* receiver()
        const send = yield* outboundOf({ allowedCidrs: ["127.0.0.2/32"] })
        const outcome = yield* send(`https://${host}:${server.port}/`)
        assert.deepInclude(outcome, { status: null, error: "blocked_address" })
        assert.strictEqual(server.seen.connections, 0)
      }))
  }

  it.effect("is connected to over plain http only when its range is allowed", () =>
    Effect.gen(function* () {
      const server = yield* receiver({})
      const names = yield* serveNames(() => ["127.0.0.1"])
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.1/32"], nameservers: [names.nameserver] })
      for (const host of ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]"]) {
        assert.deepInclude(yield* send(`http://${host}:${server.port}/`), { status: 200, error: null }, host)
      }
      for (const host of ["hook.test", "127.0.0.2", "a.localhost"]) {
        assert.deepInclude(yield* send(`http://${host}:${server.port}/`), { error: "blocked_address" }, host)
      }
      assert.deepStrictEqual(names.questions, [])
    }))

  it.effect("is refused at a port of the installation itself", () =>
    Effect.gen(function* () {
      const server = yield* receiver({})
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.0/8"], ownPorts: [server.port] })
      assert.deepInclude(yield* send(`http://127.0.0.1:${server.port}/`), { error: "blocked_address" })
      assert.strictEqual(server.seen.connections, 0)
    }))
})

describe("a certificate", () => {
  const setUp = Effect.fnUntraced(
    function* (certificateAuthorities: ReadonlyArray<string>, names: ReadonlyArray<string>) {
      const server = yield* receiver({ tls: names.length === 0 ? tls : authority.issue(...names) })
      const { nameserver } = yield* serveNames((_, family) => family === 4 ? ["127.0.0.1"] : [])
      const send = yield* outboundOf({
        allowedCidrs: ["127.0.0.1/32"],
        certificateAuthorities,
        nameservers: [nameserver],
      })
      return { server, sent: send(`https://hook.test:${server.port}/`) }
    },
  )

  it.effect("of an unknown authority fails as tls, before the request is sent", () =>
    Effect.gen(function* () {
      for (const authorities of [[], [makeAuthority("another").certificate]]) {
        const { sent, server } = yield* setUp(authorities, [])
        assert.deepInclude(yield* sent, { status: null, error: "tls" })
        assert.strictEqual(server.requests.length, 0)
      }
    }))

  it.effect("of another name fails as tls", () =>
    Effect.gen(function* () {
      const { sent, server } = yield* setUp([authority.certificate], ["other.test"])
      assert.deepInclude(yield* sent, { status: null, error: "tls" })
      assert.strictEqual(server.requests.length, 0)
    }))

  it.effect("of one of several configured authorities is accepted on each connection", () =>
    Effect.gen(function* () {
      const { sent, server } = yield* setUp([makeAuthority("another").certificate, authority.certificate], [])
      for (let turn = 0; turn < 3; turn++) assert.deepInclude(yield* sent, { status: 200, error: null })
      const [socket] = server.requests.map((request) => request.socket)
      assert.strictEqual(socket && "servername" in socket ? socket.servername : null, "hook.test")
      assert.strictEqual(
        server.seen.connections,
        4,
        "the first connection was also tried with the system's authorities",
      )
    }))

  it.effect("fails as tls when the port does not speak TLS", () =>
    Effect.gen(function* () {
      const server = yield* receiver({})
      const send = yield* outboundOf({ allowedCidrs: ["127.0.0.1/32"] })
      assert.deepInclude(yield* send(`https://127.0.0.1:${server.port}/`), { status: null, error: "tls" })
    }))
})
