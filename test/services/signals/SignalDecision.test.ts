/** What a token's claims ask for, against a table of its own and over generated claims and configurations. */
import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import { effectsOf, type Transmitter } from "../../../services/signals/ConfiguredTransmitter.ts"
import { decideSignal } from "../../../services/signals/SignalDecision.ts"

const issuer = "https://id.example"
const audience = "https://bailiwick.example"
const now = 1_800_000_000

const transmitter = (fields: Partial<Transmitter> = {}): Transmitter => ({
  issuer,
  audience,
  jwksUri: null,
  algorithms: ["ES256"],
  pushToken: Redacted.make("x"),
  poll: null,
  subjectIssuers: [issuer],
  emails: false,
  effects: effectsOf(undefined)!,
  ...fields,
})

const caep = (name: string) => `https://schemas.openid.net/secevent/caep/event-type/${name}`
const risc = (name: string) => `https://schemas.openid.net/secevent/risc/event-type/${name}`
const revoked = caep("session-revoked")
const ann = { format: "iss_sub", iss: issuer, sub: "ann" }

const claims = (fields: object = {}) => ({
  iss: issuer,
  aud: audience,
  iat: now,
  jti: "1",
  sub_id: ann,
  events: { [revoked]: {} },
  ...fields,
})
const without = (name: string) => Object.fromEntries(Object.entries(claims()).filter(([key]) => key !== name))

const decide = (from: unknown, by = transmitter()) => decideSignal(from, by, now * 1_000)

/** The refusal's code, the reason of an ignored event, or the effect. */
const told = (from: unknown, by = transmitter()) => {
  const decision = decide(from, by)
  return decision.kind === "refuse" ? decision.err : decision.kind === "ignore" ? decision.because : decision.effect
}

/** By event type: name in the configuration, and its possible effects, the default first. Written beside the program's. */
const table: Readonly<Record<string, readonly [name: string, ...effects: ReadonlyArray<string>]>> = {
  [caep("session-revoked")]: ["session-revoked", "end_sessions"],
  [risc("sessions-revoked")]: ["session-revoked", "end_sessions"],
  [caep("credential-change")]: ["credential-change", "end_sessions"],
  [risc("credential-compromise")]: ["credential-change", "end_sessions"],
  [risc("account-credential-change-required")]: ["credential-change", "end_sessions"],
  [caep("assurance-level-change")]: ["assurance-level-change", "end_sessions"],
  [risc("account-disabled")]: ["account-disabled", "hold", "end_sessions"],
  [risc("account-enabled")]: ["account-enabled", "release"],
  [risc("account-purged")]: ["account-purged", "hold", "end_sessions"],
}
const names = [...new Set(Object.values(table).map(([name]) => name))]
const possible = (name: string) => ["ignore", ...Object.values(table).find(([known]) => known === name)!.slice(1)]

describe("a signal's decision", () => {
  it("every event type has the effect of the table, unless the configuration has another", () => {
    for (const [type, [name, effect, ...others]] of Object.entries(table)) {
      assert.strictEqual(told(claims({ events: { [type]: {} } })), effect, type)
      for (const other of others) {
        const by = transmitter({ effects: effectsOf({ [name]: other })! })
        assert.strictEqual(told(claims({ events: { [type]: {} } }), by), other, type)
      }
      const silent = transmitter({ effects: effectsOf({})! })
      assert.strictEqual(told(claims({ events: { [type]: {} } }), silent), "not_configured", type)
    }
  })

  it("a configuration cannot let an event do what is another's, nor name an unknown one", () => {
    for (const name of [...names, "token-claims-change", "__proto__", "toString"]) {
      for (const effect of ["end_sessions", "hold", "release", "ignore", "purge", ""]) {
        const allowed = names.includes(name) && possible(name).includes(effect)
        const events = JSON.parse(`{${JSON.stringify(name)}: ${JSON.stringify(effect)}}`) as Record<string, string>
        assert.strictEqual(effectsOf(events) !== null, allowed, `${name}: ${effect}`)
      }
    }
  })

  it("each claim that is missing, faulty or another's refuses the token", () => {
    const refused: ReadonlyArray<readonly [fault: string, claims: unknown, code: string]> = [
      ["no object", [], "invalid_request"],
      ["null", null, "invalid_request"],
      ["no iss", without("iss"), "invalid_issuer"],
      ["another iss", claims({ iss: "https://evil.example" }), "invalid_issuer"],
      ["iss as a list", claims({ iss: [issuer] }), "invalid_issuer"],
      ["iss with a slash", claims({ iss: `${issuer}/` }), "invalid_issuer"],
      ["no aud", without("aud"), "invalid_audience"],
      ["another aud", claims({ aud: "https://other.example" }), "invalid_audience"],
      ["others' aud", claims({ aud: ["https://other.example"] }), "invalid_audience"],
      ["aud of a number", claims({ aud: [audience, 1] }), "invalid_request"],
      ["sub", claims({ sub: "ann" }), "invalid_request"],
      ["exp", claims({ exp: now + 60 }), "invalid_request"],
      ["no iat", without("iat"), "invalid_request"],
      ["iat as text", claims({ iat: String(now) }), "invalid_request"],
      ["iat ahead", claims({ iat: now + 61 }), "invalid_request"],
      ["iat long ago", claims({ iat: now - 7 * 86_400 - 1 }), "invalid_request"],
      ["no jti", without("jti"), "invalid_request"],
      ["an empty jti", claims({ jti: "" }), "invalid_request"],
      ["a jti with a blank", claims({ jti: "a b" }), "invalid_request"],
      ["a long jti", claims({ jti: "a".repeat(201) }), "invalid_request"],
      ["no events", without("events"), "invalid_request"],
      ["empty events", claims({ events: {} }), "invalid_request"],
      ["two events", claims({ events: { [revoked]: {}, [risc("account-disabled")]: {} } }), "invalid_request"],
      ["no event type", claims({ events: { "": {} } }), "invalid_request"],
      ["U+0000 in the event type", claims({ events: { "a\0": {} } }), "invalid_request"],
      ["half a character in the event type", claims({ events: { "a\ud800": {} } }), "invalid_request"],
      ["a list of events", claims({ events: [revoked] }), "invalid_request"],
      ["an event of text", claims({ events: { [revoked]: "now" } }), "invalid_request"],
      ["a time of text", claims({ events: { [revoked]: { event_timestamp: "now" } } }), "invalid_request"],
      ["no sub_id", without("sub_id"), "invalid_request"],
      ["sub_id as text", claims({ sub_id: "ann" }), "invalid_request"],
      ["sub_id without a format", claims({ sub_id: { iss: issuer, sub: "ann" } }), "invalid_request"],
      ["no sub", claims({ sub_id: { format: "iss_sub", iss: issuer } }), "invalid_request"],
      ["an empty sub", claims({ sub_id: { ...ann, sub: "" } }), "invalid_request"],
      ["U+0000 in sub", claims({ sub_id: { ...ann, sub: "ann\0" } }), "invalid_request"],
      ["a foreign subject", claims({ sub_id: { ...ann, iss: "https://other.example" } }), "access_denied"],
      ["an address", claims({ sub_id: { format: "email", email: "ann@fern.example" } }), "access_denied"],
      ["complex without a user", claims({ sub_id: { format: "complex" } }), "invalid_request"],
      ["a foreign user", claims({ sub_id: { format: "complex", user: { ...ann, iss: "x" } } }), "access_denied"],
      ["a session of text", claims({ sub_id: { format: "complex", user: ann, session: "s" } }), "invalid_request"],
    ]
    for (const [fault, from, code] of refused) assert.strictEqual(told(from), code, fault)
    for (const aud of [audience, [audience], ["https://other.example", audience]]) {
      assert.strictEqual(told(claims({ aud })), "end_sessions")
    }
    assert.strictEqual(told(claims({ iat: now + 60 })), "end_sessions")
    assert.strictEqual(told(claims({ iat: now - 7 * 86_400 })), "end_sessions")
  })

  it("what names no person here, or less than a person, is ignored", () => {
    const disabled = { events: { [risc("account-disabled")]: {} } }
    const complex = (more: object) => ({ sub_id: { format: "complex", user: ann, ...more } })
    const session = { format: "opaque", id: "s1" }
    const ignored: ReadonlyArray<readonly [claims: object, because: string]> = [
      [{ sub_id: { format: "opaque", id: "ann" } }, "unknown_subject_format"],
      [{ sub_id: { format: "phone_number", phone_number: "+12065550100" } }, "unknown_subject_format"],
      [complex({ user: session }), "unknown_subject_format"],
      [complex({ device: { format: "opaque", id: "d" } }), "narrower_subject"],
      [complex({ tenant: { format: "opaque", id: "t" } }), "narrower_subject"],
      [complex({ session: { format: "jwt_id", iss: issuer, jti: "j" } }), "narrower_subject"],
      [{ ...disabled, ...complex({ session }) }, "narrower_subject"],
      [{ events: { [caep("device-compliance-change")]: {} } }, "unknown_type"],
      [{ events: { ["https://schemas.openid.net/secevent/ssf/event-type/verification"]: {} } }, "stream_event"],
    ]
    for (const [fields, because] of ignored) assert.strictEqual(told(claims(fields)), because, JSON.stringify(fields))
    assert.strictEqual(told(claims({ ...disabled, ...complex({}) })), "hold")
    const act = decide(claims(complex({ session })))
    assert.deepInclude(act, { kind: "act", effect: "end_sessions", session: "s1", person: { issuer, subject: "ann" } })
    const mail = { sub_id: { format: "email", email: "Ann@fern.example" } }
    assert.deepInclude(decide(claims(mail), transmitter({ emails: true })), { person: { email: "Ann@fern.example" } })
  })

  it("only a level that fell ends sessions", () => {
    const change = (payload: object) => told(claims({ events: { [caep("assurance-level-change")]: payload } }))
    assert.strictEqual(change({ change_direction: "decrease" }), "end_sessions")
    assert.strictEqual(change({}), "end_sessions")
    assert.strictEqual(change({ change_direction: "increase" }), "not_lower")
    assert.strictEqual(change({ change_direction: 1 }), "not_lower")
  })

  it("any claims and any configuration give an effect that is configured, for a person who may be named, or nothing", () => {
    const type = fc.constantFrom(...Object.keys(table), caep("device-compliance-change"))
    const subject = fc.oneof(
      fc.record({
        format: fc.constantFrom("iss_sub", "email", "opaque", "complex"),
        iss: fc.constantFrom(issuer, "https://other.example"),
        sub: fc.string(),
        email: fc.emailAddress(),
        user: fc.constantFrom(ann, { ...ann, iss: "https://other.example" }, null),
      }, { requiredKeys: [] }),
      fc.jsonValue(),
    )
    const anything = fc.record({
      iss: fc.constantFrom(issuer, "https://other.example"),
      aud: fc.oneof(fc.constant(audience), fc.constant([audience]), fc.jsonValue()),
      iat: fc.oneof(fc.integer({ min: now - 8 * 86_400, max: now + 120 }), fc.jsonValue()),
      jti: fc.oneof(fc.uuid(), fc.jsonValue()),
      sub_id: subject,
      events: fc.oneof(
        fc.tuple(type, fc.record({ event_timestamp: fc.jsonValue() }, { requiredKeys: [] })).map((one) =>
          Object.fromEntries([one])
        ),
        fc.jsonValue(),
      ),
      exp: fc.integer(),
    }, { requiredKeys: ["iss", "aud", "iat", "jti", "events"] })
    const configured = fc.record({
      effects: fc.tuple(...names.map((name) => fc.constantFrom(...possible(name)).map((effect) => [name, effect])))
        .chain((all) => fc.subarray(all)).map((some) => Object.fromEntries(some) as Record<string, string>),
      emails: fc.boolean(),
      subjectIssuers: fc.subarray([issuer, "https://other.example"], { minLength: 1 }),
    })
    fc.assert(fc.property(anything, configured, (from, { effects, ...rest }) => {
      const decision = decide(from, transmitter({ ...rest, effects: effectsOf(effects)! }))
      if (decision.kind !== "act") return
      const [name] = table[decision.type]!
      assert.strictEqual(decision.effect, effects[name])
      assert.deepStrictEqual(Object.keys(from.events as object), [decision.type])
      assert.strictEqual(from.iss, issuer)
      assert.strictEqual(from.jti, decision.jti)
      assert.notProperty(from, "exp")
      assert.include([from.aud].flat(), audience)
      assert.isAtMost(decision.before, now * 1_000)
      assert.isAtLeast(from.iat as number, now - 7 * 86_400)
      if ("email" in decision.person) assert.isTrue(rest.emails)
      else assert.include(rest.subjectIssuers, decision.person.issuer)
    }))
  })
})
