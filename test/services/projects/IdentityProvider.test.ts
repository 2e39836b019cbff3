/** One suite over both adapters of the port: the embedded one, and RFC 7591/7592 against a real provider. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { type ClientTarget, IdentityProvider, ProviderFault } from "../../../services/projects/IdentityProvider.ts"
import { embedded } from "../../../services/projects/IdentityProvider/embedded.ts"
import { registration } from "../../../services/projects/IdentityProvider/registration.ts"
import { driftOf } from "../../../services/projects/ProviderJobs/Targets.ts"
import { initialAccessToken, oidcProvider } from "../../support/OidcProvider.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const outbound = Outbound.layer({
  ...{ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 5_000, ownPorts: [] },
})

const registered = (token: string | null) =>
  Layer.unwrap(Effect.map(oidcProvider, ({ registrationEndpoint }) =>
    registration({
      registrationEndpoint,
      initialAccessToken: token === null ? null : Redacted.make(token),
    }))).pipe(Layer.provide(outbound), Layer.orDie)

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

/** The target of another project. */
const another = (): ClientTarget => ({ ...target, software_id: `bailiwick:${randomUUID()}` })

const conformance = (name: string, adapter: Layer.Layer<IdentityProvider, unknown>) =>
  describe(name, () => {
    layer(adapter, { excludeTestServices: true })((it) => {
      it.effect("makes a client that is what it was to be", () =>
        Effect.gen(function* () {
          const provider = yield* IdentityProvider
          const wanted = another()
          const { client, observed } = yield* provider.create(wanted)
          assert.deepStrictEqual(driftOf(wanted, observed), [])
          const seen = yield* provider.read(client)
          assert.strictEqual(seen?.client.clientId, client.clientId)
          assert.deepStrictEqual(driftOf(wanted, seen!.observed), [])
        }))

      it.effect("changes it, again and again, and sees what another hand changed", () =>
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

      it.effect("finds a client by the reference that it was asked for with, or says that it cannot", () =>
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
  it.effect("ends a client for good, as often as it is asked", () =>
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
  it.effect("ends a client; what it says of it from then on is not taken for a success", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const { client } = yield* provider.create(another())
      yield* provider.disable(client)
      const fault = yield* Effect.flip(provider.disable(client))
      assert.deepInclude(fault, { reason: "refused", code: "status_401" })
    }))

  it.effect("refuses what is no client", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const fault = yield* Effect.flip(provider.create({ ...another(), redirect_uris: ["no-uri"] }))
      assert.deepStrictEqual([fault.reason, fault.code], ["refused", "status_400"])
    }))
})

layer(registered("another-token"), { excludeTestServices: true })("a real provider without the token", (it) => {
  it.effect("refuses, and no secret is in the fault", () =>
    Effect.gen(function* () {
      const provider = yield* IdentityProvider
      const fault = yield* Effect.flip(provider.create(another()))
      assert.instanceOf(fault, ProviderFault)
      assert.deepStrictEqual([fault.reason, fault.code], ["refused", "status_401"])
      assert.notInclude(JSON.stringify(fault), "another-token")
    }))
})
