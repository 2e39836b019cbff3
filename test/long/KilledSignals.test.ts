/**
 * The program is killed with SIGKILL while it takes security events of an identity provider, pushed and polled, and
 * while it checks what an issuer asks of a person. A repetition is done once: a token has one record and tells
 * products once, a recovery code passes once, and none is used up by a check that did not happen.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { AssertionFault, DecisionFault, SignalFault } from "../../services/platform/Failpoints.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { fixture, type IdentityFixture } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"
import { diesAt, dyingAt, unanswered } from "./support/Doomed.ts"
import { type Answers, audience, caep, eventClaims, pair, serving, signed } from "../support/TestTransmitter.ts"

const pushToken = "push-".padEnd(40, "s")
const pushing = "https://pushing.example"
const polled = "https://polled.example"
const signIn = "sign-in"

/** Posts to a process that dies of it, without an answer. */
const posted = (
  around: IdentityFixture,
  point: SignalFault | DecisionFault | AssertionFault,
  path: string,
  options: { readonly raw?: string; readonly body?: object; readonly headers: Readonly<Record<string, string>> },
) => unanswered(around, point, ({ call }) => call("POST", path, options))

/** How often a token was recorded and its person's end of sessions was told. */
const done = (around: IdentityFixture, jti: string) =>
  Effect.map(
    around.rows<{ records: number; told: number }>(
      `select (select count(*)::int from audit_records where details ->> 'jti' = $1) as records,
        (select count(distinct txn)::int from lifecycle_events where kind = 'session-revoked') as told`,
      [jti],
    ),
    ([row]) => row!,
  )

const killedSignals = Effect.fnUntraced(function* (
  around: IdentityFixture,
  keys: Readonly<Record<"pushing" | "polled", Effect.Success<ReturnType<typeof pair>>>>,
  waiting: Map<string, string>,
) {
  const about = (issuer: string) => eventClaims(issuer, caep("session-revoked"), { issuer: demoIssuer, subject: "pat" })
  const pushed = about(pushing)
  const token = yield* signed(keys.pushing, pushed)
  const request = {
    raw: token,
    headers: { "content-type": "application/secevent+jwt", authorization: `Bearer ${pushToken}` },
  }
  const { told: before } = yield* done(around, pushed.jti)
  yield* posted(around, "signal.written", "/signals/events", request)
  assert.deepStrictEqual(yield* done(around, pushed.jti), { records: 0, told: before })
  yield* posted(around, "signal.committed", "/signals/events", request)
  assert.deepStrictEqual(yield* done(around, pushed.jti), { records: 1, told: before + 1 })
  const { call } = api(around.instance.origin)
  assert.strictEqual((yield* call("POST", "/signals/events", request)).status, 202)
  assert.deepStrictEqual(yield* done(around, pushed.jti), { records: 1, told: before + 1 })

  const given = about(polled)
  waiting.set(given.jti, yield* signed(keys.polled, given))
  yield* diesAt(around, "signal.committed", "intake")
  assert.strictEqual(waiting.size, 1, "done, and not acknowledged")
  assert.deepStrictEqual(yield* done(around, given.jti), { records: 1, told: before + 2 })
  // The dead process's lease.
  yield* around.rows(`update signal_polls set claim = null, lease_until = null, not_before = 'epoch'`)
  yield* Effect.scoped(Effect.gen(function* () {
    yield* dyingAt(around, "assertion.committed", "intake")
    yield* until("the token is acknowledged", Effect.sync(() => waiting.size), (left) => left === 0)
  }))
  assert.deepStrictEqual(yield* done(around, given.jti), { records: 1, told: before + 2 })
})

const killedAssertions = Effect.fnUntraced(function* (around: IdentityFixture) {
  const { mintAccessToken } = yield* Effect.provide(EmbeddedIssuer, around.issuer)
  const token = yield* mintAccessToken({ issuer: demoIssuer, subject: signIn, clientId: signIn })
  const headers = { authorization: `Bearer ${token}` }
  const asIssuer = api(around.instance.origin, headers)
  const sam = yield* around.as("sam")
  const actions = "/v1/me/credential-actions"
  const keyed = () => ({ headers: { "idempotency-key": randomUUID() } })
  const { json: intent } = yield* sam.post(actions, { kind: "recovery_codes.generate" }, keyed())
  const { json: made, text } = yield* sam.post(`${actions}/${intent.intent_id}/complete`, {
    proof: { type: "confirm", acknowledged: true },
  }, keyed())
  const [code] = made.recovery_codes as ReadonlyArray<string>
  assert.isString(code, text)
  const { json: started } = yield* asIssuer.post("/v1/assertions", { subject: "sam" })
  const path = `/v1/assertions/${started.assertion_id}/check`
  const body = { proof: { type: "recovery_code", code } }
  const counts = around.rows<{ state: string; used: number; passed: number }>(
    `select state, (select count(*)::int from recovery_codes where used_at is not null) as used,
      (select count(*)::int from audit_records where action = 'assertion.passed') as passed
    from authenticator_assertions where id = $1::uuid`,
    [started.assertion_id],
  )

  yield* posted(around, "decision.written", path, { body, headers })
  assert.deepStrictEqual(yield* counts, [{ state: "pending", used: 0, passed: 0 }])
  yield* posted(around, "assertion.committed", path, { body, headers })
  assert.deepStrictEqual(yield* counts, [{ state: "passed", used: 1, passed: 1 }])
  const again = yield* asIssuer.post(path, body)
  assert.deepStrictEqual([again.json.verified, again.json.ended], [false, true], again.text)
  const { json: other } = yield* asIssuer.post("/v1/assertions", { subject: "sam" })
  assert.isFalse((yield* asIssuer.post(`/v1/assertions/${other.assertion_id}/check`, body)).json.verified)
  const { json: next } = yield* asIssuer.post("/v1/assertions", { subject: "sam" })
  const unused = { proof: { type: "recovery_code", code: made.recovery_codes[1] } }
  assert.isTrue((yield* asIssuer.post(`/v1/assertions/${next.assertion_id}/check`, unused)).json.verified)
})

describe("security events and assertions, killed", () => {
  it.live("are done once, or not at all", () =>
    Effect.gen(function* () {
      const keys = { pushing: yield* pair("ES256", "pushing-1"), polled: yield* pair("ES256", "polled-1") }
      const waiting = new Map<string, string>()
      const paths = new Map<string, Answers>([
        ["/pushing", () => [200, { keys: [keys.pushing.jwk] }]],
        ["/polled", () => [200, { keys: [keys.polled.jwk] }]],
        ["/poll", ({ body }) => {
          for (const jti of (body["ack"] ?? []) as ReadonlyArray<string>) waiting.delete(jti)
          return [200, { sets: Object.fromEntries(waiting), moreAvailable: false }]
        }],
      ])
      const url = yield* serving(paths)
      const transmitter = (issuer: string, name: string, more: object) => ({
        issuer,
        audience,
        jwks_uri: `${url}/${name}`,
        subject_issuers: [demoIssuer],
        ...more,
      })
      const around = yield* fixture({}, {
        ROLES: "api,relay",
        ASSERTION_CLIENTS: `${demoIssuer} ${signIn}`,
        SIGNAL_TRANSMITTERS: JSON.stringify([
          transmitter(pushing, "pushing", { push_token: pushToken }),
          transmitter(polled, "polled", { poll: { endpoint: `${url}/poll`, token: pushToken } }),
        ]),
      })
      // Of different people: the end of one's sessions would end the other's token.
      yield* Effect.all([killedAssertions(around), killedSignals(around, keys, waiting)], { concurrency: 2 })
    }).pipe(Effect.scoped), 240_000)
})
