/** One suite over both adapters of the port: the embedded one, and RFC 7591/7592 against a real provider. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { type ClientTarget, IdentityProvider, ProviderFault } from "../../../services/projects/IdentityProvider.ts"
import { embedded } from "../../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { registration } from "../../../services/projects/IdentityProvider/ClientRegistration.ts"
import { driftOf } from "../../../services/projects/ProviderJobs/JobTargets.ts"
import { initialAccessToken, oidcProvider } from "../../support/OidcProvider.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const outbound = (timeoutMillis: number) =>
  Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis, ownPorts: [] })

class Real extends Context.Service<Real, Effect.Success<typeof oidcProvider>>()("bailiwick/test/services/Real") {}

const registered = (token: string | null, timeoutMillis = 5_000) =>
  Layer.unwrap(Effect.map(Real, ({ registrationEndpoint }) =>
    registration({
      registrationEndpoint,
      initialAccessToken: token === null ? null : Redacted.make(token),
    }))).pipe(
      Layer.provide(outbound(timeoutMillis)),
      Layer.provideMerge(Layer.effect(Real, oidcProvider)),
      Layer.orDie,
    )

const target: ClientTarget = {
  client_name: "Fern Portal",
  redirect_uris: ["https://portal.fern.example/callback"],
  post_logout_redirect_uris: ["https://portal.fern.example/"],
  backchannel_logout_uri: "https://portal.fern.example/logout",
  grant_types: ["authorization_code"],
  response_types: ["code"],
  scope: "openid profile",
  token_endpoint_auth_method: "none",
  software_id: "bailiwick:one",
}

/** The expected fields of another project. */
const another = (): ClientTarget => ({ ...target, software_id: `bailiwick:${randomUUID()}` })

const conformance = (name: string, adapter: Layer.Layer<IdentityProvider, unknown>) =>
  describe(name, () => {
    layer(adapter, { excludeTestServices: true })((it) => {
      it.effect("makes a client with the expected fields", () =>
        Effect.gen(function* () {
          const provider = yield* IdentityProvider
          const wanted = another()
          const { client, observed } = yield* provider.create(wanted)
          assert.deepStrictEqual(driftOf(wanted, observed), [])
          const seen = yield* provider.read(client)
          assert.strictEqual(seen?.client.clientId, client.clientId)
          assert.deepStrictEqual(driftOf(wanted, seen!.observed), [])
        }))

      it.effect("makes a client without sign-in, for client credentials", () =>
        Effect.gen(function* () {
          const provider = yield* IdentityProvider
          const wanted = {
            ...another(),
            redirect_uris: [],
            post_logout_redirect_uris: [],
            backchannel_logout_uri: null,
            scope: "",
            grant_types: ["client_credentials"],
            response_types: [],
            token_endpoint_auth_method: "client_secret_basic",
          }
          const { client, observed } = yield* provider.create(wanted)
          assert.deepStrictEqual(driftOf(wanted, observed), [])
          assert.deepStrictEqual(driftOf(wanted, (yield* provider.update(client, wanted)).observed), [])
        }))

      it.effect("changes a client repeatedly, and sees a change by another hand", () =>
        Effect.gen(function* () {
          const provider = yield* IdentityProvider
          const wanted = another()
          const { client } = yield* provider.create(wanted)
          const renamed = { ...wanted, client_name: "Fern", redirect_uris: ["https://fern.example/a"] }
          const once = yield* provider.update(client, renamed)
          assert.deepStrictEqual(driftOf(renamed, once.observed), [])
          const twice = yield* provider.update(once.client, renamed)
          const seen = yield* provider.read(twice.client)
          assert.deepStrictEqual(driftOf(renamed, seen!.observed), [])
          assert.deepStrictEqual(driftOf(wanted, seen!.observed).map(({ field }) => field), [
            "client_name",
            "redirect_uris",
          ])
        }))

      it.effect("finds a client by its request's reference, or reports that it cannot", () =>
        Effect.gen(function* () {
          const provider = yield* IdentityProvider
          const wanted = another()
          const reference = wanted.software_id
          const before = yield* provider.find(reference)
          const { client } = yield* provider.create(wanted)
          const after = yield* provider.find(reference)
          if (before === "unfindable") assert.strictEqual(after, "unfindable")
          else {
            assert.isNull(before)
            assert.strictEqual(after === null || after === "unfindable" ? null : after.clientId, client.clientId)
          }
        }))
    })
  })

conformance("the embedded provider", embedded.pipe(Layer.provide(TestDatabase.layer)))
conformance("a provider behind dynamic registration", registered(initialAccessToken))

layer(embedded.pipe(Layer.provide(TestDatabase.layer)))("the embedded provider alone", (it) => {
  it.effect("ends a client for good, however often it is asked", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const { client } = yield* provider.create(another())
      yield* provider.disable(client)
      yield* provider.disable(client)
      assert.isNull(yield* provider.read(client))
      const fault = yield* Effect.flip(provider.update(client, target))
      assert.strictEqual(fault.reason, "refused")
    }))
})

layer(registered(initialAccessToken), { excludeTestServices: true })("a real provider", (it) => {
  it.effect("an ended client's 401 is not taken for a success", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const { client } = yield* provider.create(another())
      yield* provider.disable(client)
      const fault = yield* Effect.flip(provider.disable(client))
      assert.deepInclude(fault, { reason: "refused", code: "status_401" })
    }))

  it.effect("a credential that no header can carry is never sent", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const { interference } = yield* Real
      const { client } = yield* provider.create(another())
      const before = interference.seen.length
      for (const token of ["one\ntwo", "\u{1F511}", "\u0000"]) {
        const fault = yield* Effect.flip(provider.read({ ...client, managementToken: Redacted.make(token) }))
        assert.strictEqual(fault.reason, "refused")
        assert.notInclude(JSON.stringify(fault), token)
      }
      const nowhere = yield* Effect.flip(provider.disable({ ...client, managementUri: "reg/one" }))
      assert.deepStrictEqual([nowhere.reason, nowhere.code], ["refused", "unusable_management"])
      assert.lengthOf(interference.seen, before)
    }))

  it.effect("refuses an invalid client", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const fault = yield* Effect.flip(provider.create({ ...another(), redirect_uris: ["no-uri"] }))
      assert.deepStrictEqual([fault.reason, fault.code], ["refused", "status_400"])
    }))
})

/** Answers of a provider to a registration, and the outcome that each means. */
const answers: ReadonlyArray<
  readonly [name: string, "before" | "after", (response: ServerResponse) => void, reason: string, code: string]
> = [
  ["cuts the connection", "after", (response) => response.socket?.destroy(), "unknown", "reset"],
  [
    "stops in the middle",
    "after",
    (response) => {
      response.writeHead(201, { "content-length": "1000" }).write("{")
      setTimeout(() => response.socket?.destroy(), 50)
    },
    "unknown",
    "body",
  ],
  ["fails", "after", (response) => response.writeHead(500).end(), "unknown", "status_500"],
  ["is not reached by its gateway", "after", (response) => response.writeHead(504).end(), "unknown", "status_504"],
  ["has taken it for later", "after", (response) => response.writeHead(202).end("{}"), "unknown", "status_202"],
  ["shows elsewhere what it did", "after", (response) => response.writeHead(303).end(), "unknown", "status_303"],
  [
    "says something unreadable",
    "after",
    (response) => response.writeHead(201).end("<html>"),
    "unknown",
    "unreadable_answer",
  ],
  ["names no client", "after", (response) => response.writeHead(201).end("{}"), "unknown", "unreadable_answer"],
  ["says too much", "after", (response) => response.writeHead(201).end("x".repeat(3_000_000)), "unknown", "too_large"],
  ["is busy", "before", (response) => response.writeHead(429).end(), "unavailable", "status_429"],
  ["is away", "before", (response) => response.writeHead(503).end(), "unavailable", "status_503"],
  ["moved", "before", (response) => response.writeHead(308, { location: "/x" }).end(), "refused", "status_308"],
  ["refuses", "before", (response) => response.writeHead(403).end(), "refused", "status_403"],
]

/** Longer than any call may take. */
const patience = 60_000

layer(registered(initialAccessToken, patience), { excludeTestServices: true })("a misbehaving provider", (it) => {
  for (const call of ["create", "read"] as const) {
    const reason = call === "create" ? "unknown" : "unavailable"
    it.effect(`that is silent on a ${call} has ten seconds, whatever other calls may take: ${reason}`, () =>
      Effect.gen(function* () {
        const { create, read } = yield* IdentityProvider
        const { interference, registrationEndpoint } = yield* Real
        const arrived = yield* Deferred.make<ServerResponse>()
        const instead = (response: ServerResponse) => Deferred.doneUnsafe(arrived, Effect.succeed(response))
        const client = { clientId: "one", managementUri: `${registrationEndpoint}/one`, managementToken: null }
        Object.assign(interference, { cut: "before", instead })
        const asked = yield* Effect.forkChild(Effect.flip(call === "create" ? create(another()) : read(client)))
        const response = yield* Deferred.await(arrived)
        yield* TestClock.adjust("9999 millis")
        assert.isUndefined(asked.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        const fault = yield* Fiber.join(asked)
        assert.deepStrictEqual([fault.reason, fault.code], [reason, "timeout"])
        // The connection is not kept for an answer that comes too late.
        if (response.socket?.destroyed === false) yield* Effect.promise(() => once(response, "close"))
        Object.assign(interference, { cut: null })
      }).pipe(Effect.provide(TestClock.layer())))
  }

  for (const [name, cut, instead, reason, code] of answers) {
    it.effect(`that ${name}: ${reason}`, () =>
      Effect.gen(function* () {
        const provider = yield* IdentityProvider
        const { interference } = yield* Real
        const before = interference.seen.length
        Object.assign(interference, { cut, instead })
        const fault = yield* Effect.flip(provider.create(another())).pipe(
          Effect.ensuring(Effect.sync(() => Object.assign(interference, { cut: null }))),
        )
        assert.deepStrictEqual([fault.reason, fault.code], [reason, code])
        assert.lengthOf(interference.seen, before + 1)
      }))
  }

  it.effect("that answers an update with another client leaves the outcome unknown", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const { interference } = yield* Real
      const { client } = yield* provider.create(another())
      const instead = (response: ServerResponse) => response.writeHead(200).end('{"client_id": "another"}')
      Object.assign(interference, { cut: "before", instead })
      const fault = yield* Effect.flip(provider.update(client, another())).pipe(
        Effect.ensuring(Effect.sync(() => Object.assign(interference, { cut: null }))),
      )
      assert.deepStrictEqual([fault.reason, fault.code], ["unknown", "another_client"])
    }))

  it.effect("an address of another origin is not managed by it", () =>
    Effect.gen(function* () {
      const { manages } = yield* IdentityProvider
      const { registrationEndpoint, url } = yield* Real
      assert.isTrue(manages(`${registrationEndpoint}/one`))
      for (
        const uri of [
          "http://169.254.169.254/",
          url.replace("http:", "https:"),
          `${url}.example/`,
          "reg/one",
          "file:///",
        ]
      ) {
        assert.isFalse(manages(uri), uri)
      }
    }))
})

layer(registered("another-token"), { excludeTestServices: true })("a real provider without the token", (it) => {
  it.effect("refuses, without a secret in the fault", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const fault = yield* Effect.flip(provider.create(another()))
      assert.instanceOf(fault, ProviderFault)
      assert.deepStrictEqual([fault.reason, fault.code], ["refused", "status_401"])
      assert.notInclude(JSON.stringify(fault), "another-token")
    }))
})
