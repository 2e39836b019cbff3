/**
 * Streams over the whole program, as a receiver uses them: managed over HTTP, polled and pushed to, by the modules of
 * the OpenID conformance suite for the transmitter's delivery.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { createLocalJWKSet, jwtVerify } from "jose"
import { randomUUID } from "node:crypto"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { grant, scene } from "../services/lifecycle/LifecycleFixture.ts"
import { pushed, readSet } from "../services/event-streams/StreamFixture.ts"
import { done, type Headers, send } from "../src/http/identity/IdentityClient.ts"
import { codeOf } from "../support/Fixtures.ts"
import { access, person } from "../support/TestIdentity.ts"
import { Logged, management } from "../support/TestManagement.ts"
import { serviceTokenFor } from "../support/TestTokens.ts"

const streams = "/v1/lifecycle/streams"
const now = { returnImmediately: true }

const receiver = Effect.gen(function* () {
  const made = yield* scene
  const clientId = `receiver-${randomUUID()}`
  const grantId = yield* grant(made, clientId, ["stream.manage", "events.read"])
  const token = yield* serviceTokenFor(clientId, { audience: "service-lifecycle" })
  const ask = (method: string, path: string, body?: unknown, headers: Headers = {}) =>
    send(method, path, { authorization: `Bearer ${token}`, ...headers }, body)
  const create = (body: object = {}) => Effect.map(ask("POST", streams, body), done)
  const poll = (id: string, body: object = now) => ask("POST", `${streams}/${id}/poll`, body)
  /** Appends one more event, of the project itself. */
  const decide = Effect.gen(function* () {
    return yield* access(made.institution, made.project, yield* person())
  })
  return { ...made, ask, clientId, create, decide, grantId, poll, token }
})

type Receiver = Effect.Success<typeof receiver>

/** Polls until there is an event, and returns the tokens. */
const fetched = Effect.fnUntraced(function* ({ poll }: Pick<Receiver, "poll">, id: string, body: object = {}) {
  const { sets } = done(yield* poll(id, body)) as { readonly sets: Readonly<Record<string, string>> }
  return Object.entries(sets).map(([jti, token]) => ({ ...readSet(token), key: jti, token }))
})

const program = management({ ROLES: "api,lifecycle", WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8" })

layer(program, { excludeTestServices: true })("Streams of the program", (it) => {
  it.effect("polled: a decision is a token signed by a published key, and waits until it is acknowledged", () =>
    Effect.gen(function* () {
      const { create, decide, poll, project } = yield* receiver
      const { aud, delivery, stream_id: id } = yield* create()
      assert.deepStrictEqual(delivery, {
        method: "urn:ietf:rfc:8936",
        endpoint_url: `http://127.0.0.1:8080${streams}/${id}/poll`,
      })
      assert.deepStrictEqual(done(yield* poll(id)), { sets: {}, moreAvailable: false })
      const waiting = yield* Effect.forkChild(fetched({ poll }, id))
      yield* decide
      const [event] = yield* Fiber.join(waiting)
      assert.strictEqual(event!.key, event!.jti)
      assert.strictEqual(event!.type, "access-granted")
      const jwks = done(yield* send("GET", "/v1/lifecycle/jwks"))
      yield* Effect.promise(() =>
        jwtVerify(event!.token, createLocalJWKSet(jwks), {
          issuer: "http://127.0.0.1:8080/lifecycle",
          audience: aud,
          typ: "secevent+jwt",
          algorithms: ["RS256"],
        })
      )
      assert.strictEqual(aud, `urn:bailiwick:project:${project}`)
      assert.deepStrictEqual(yield* fetched({ poll }, id, now), [event])
      const acked = yield* poll(id, { ...now, maxEvents: 0, ack: [event!.jti] })
      assert.deepStrictEqual([acked.status, acked.body], [200, { sets: {}, moreAvailable: false }])
      assert.match(acked.headers["content-type"]!, /^application\/json/)
      assert.strictEqual(acked.headers["cache-control"], "no-store")
      assert.deepStrictEqual(done(yield* poll(id)), { sets: {}, moreAvailable: false })
    }))

  it.effect("polled: verification, setErrs, paused and disabled, as the receiver asked for them", () =>
    Effect.gen(function* () {
      const here = yield* receiver
      const { ask, create, decide, poll } = here
      const { stream_id: id } = yield* create()
      assert.strictEqual((yield* ask("POST", "/v1/lifecycle/verify", { stream_id: id, state: "s" })).status, 204)
      const [verification] = yield* fetched(here, id)
      assert.deepStrictEqual([verification!.type, verification!.event], ["verification", { state: "s" }])
      const become = (status: string) => ask("POST", "/v1/lifecycle/status", { stream_id: id, status })
      yield* become("paused")
      yield* decide
      assert.deepStrictEqual(yield* fetched(here, id, { ...now, ack: [verification!.jti] }), [])
      yield* become("enabled")
      const [held] = yield* fetched(here, id)
      assert.strictEqual(held!.type, "access-granted")
      const setErrs = { [held!.jti]: { err: "invalid_key", description: "who?" } }
      const [stopped] = yield* fetched(here, id, { ...now, setErrs })
      assert.deepStrictEqual(stopped!.event, { status: "paused", reason: "invalid_key" })
      const status = done(yield* ask("GET", `/v1/lifecycle/status?stream_id=${id}`))
      assert.deepStrictEqual(status, { stream_id: id, status: "paused", reason: "invalid_key" })
      yield* become("disabled")
      yield* decide
      yield* become("enabled")
      assert.deepStrictEqual(yield* fetched(here, id, now), [])
      assert.strictEqual((yield* ask("DELETE", `${streams}?stream_id=${id}`)).status, 204)
      assert.deepStrictEqual(codeOf(yield* poll(id)), [404, "not_found"])
    }))

  it.effect("poll endpoint: bad bodies, tokens and streams and missing rights are refused; each stream has its own", () =>
    Effect.gen(function* () {
      const [here, there] = [yield* receiver, yield* receiver]
      const { administrator: personId, create, grantId, poll, project: projectId, token } = here
      const [one, two] = [yield* create(), yield* create()]
      assert.notStrictEqual(one.delivery.endpoint_url, two.delivery.endpoint_url)
      const id: string = one.stream_id
      const path = `${streams}/${id}/poll`
      const bodies: ReadonlyArray<object> = [
        [],
        { maxEvents: -1 },
        { maxEvents: 1.5 },
        { maxEvents: "1" },
        { returnImmediately: "yes" },
        { ack: "jti" },
        { ack: [1] },
        { setErrs: [] },
        { setErrs: { jti: "invalid_key" } },
        { setErrs: { jti: { description: "no code" } } },
      ]
      for (const body of bodies) {
        assert.deepStrictEqual(codeOf(yield* poll(id, body)), [400, "malformed_request"], JSON.stringify(body))
      }
      for (const text of ["{", '"x"', "{}}"]) {
        const broken = yield* here.ask("POST", path, text, { "content-type": "application/json" })
        assert.deepStrictEqual(codeOf(broken), [400, "malformed_request"], text)
      }
      // An unknown member is ignored, and a number beyond the limit counts as the limit.
      const generous = yield* poll(id, { ...now, maxEvents: 1_000_000, unknown: true, ack: ["nothing of ours"] })
      assert.deepStrictEqual(done(generous), { sets: {}, moreAvailable: false })
      assert.deepStrictEqual(codeOf(yield* send("POST", path, {}, now)), [401, "invalid_token"])
      assert.deepStrictEqual(codeOf(yield* send("POST", `${path}?access_token=${token}`, {}, now)), [
        401,
        "invalid_token",
      ])
      const wrong = yield* serviceTokenFor(here.clientId, { audience: "service-management" })
      assert.deepStrictEqual(codeOf(yield* poll("none")), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* poll(randomUUID())), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* there.poll(id)), [404, "not_found"])
      assert.deepStrictEqual(
        codeOf(yield* send("POST", path, { authorization: `Bearer ${wrong}` }, now)),
        [401, "invalid_token"],
      )
      yield* run((yield* ServiceGrants).revoke({ personId, projectId, grantId, reason: "over and out" }))
      const refused = yield* poll(id)
      assert.deepStrictEqual(codeOf(refused), [403, "role_required"])
      assert.match(refused.headers["www-authenticate"]!, /insufficient_scope/)
    }))

  it.effect("pushed: with its authorization, in order, and never logged", () =>
    Effect.gen(function* () {
      const { create, decide } = yield* receiver
      const { arrivals, heard, url } = yield* pushed()
      const secret = `Bearer ${randomUUID()}`
      const delivery = { method: "urn:ietf:rfc:8935", endpoint_url: url(), authorization_header: secret }
      const { stream_id: id } = yield* create({ delivery })
      yield* decide
      yield* decide
      yield* Queue.takeN(heard, 2)
      assert.deepStrictEqual(arrivals.map(({ type }) => type), ["access-granted", "access-granted"])
      assert.strictEqual(arrivals[1]!.position, arrivals[0]!.position! + 1)
      assert.deepStrictEqual(arrivals.map(({ headers }) => headers.authorization), [secret, secret])
      const { lines } = yield* Logged
      assert.isFalse(lines.some((line) => line.includes(secret) || line.includes(arrivals[0]!.token)), id)
    }))
})
