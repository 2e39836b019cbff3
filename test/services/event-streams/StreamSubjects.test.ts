import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import * as fc from "fast-check"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { Subject } from "../../../schemas/identity/SubjectIds.ts"
import {
  eventsDelivered,
  filtered,
  filterOf,
  isFor,
  type SaidSubject,
  subjectsMatch,
  type Wanted,
} from "../../../services/event-streams/Streams/StreamSubjects.ts"
import { eventsSupported } from "../../../schemas/identity/LifecycleEventKinds.ts"

const user = (sub: string): Subject => ({ format: "iss_sub", iss: "https://id.example", sub })
const opaque = (id: string): Subject => ({ format: "opaque", id })
const complex = (members: Readonly<Record<string, Subject>>): Subject => ({ format: "complex", ...members })

const everything: Wanted = { events_requested: null, subjects: [] }
const kinds = Object.keys(lifecycleEventKinds) as ReadonlyArray<LifecycleEventKind>

/** Few names, so that subjects collide. */
const name = fc.constantFrom("a", "b")
const simple = fc.oneof(name.map(user), name.map(opaque))
const member = fc.constantFrom("user", "application", "tenant", "session", "device")
const compound = fc.dictionary(member, simple, { minKeys: 1, maxKeys: 4 }).map(complex)
const subject = fc.oneof(simple, compound)
/** The subject as Positions writes it. */
const told = fc.oneof(
  name.map(user),
  fc.record({ user: name.map(user), session: name.map(opaque) }).map(complex),
  fc.record({ user: name.map(user), application: name.map(opaque), tenant: name.map(opaque) }).map(complex),
  fc.record({ application: name.map(opaque), tenant: name.map(opaque) }).map(complex),
)
const said = fc.array(fc.record({ subject, included: fc.boolean() }), { maxLength: 6 })
const requested = fc.option(
  fc.uniqueArray(fc.constantFrom(...eventsSupported, "urn:example:unknown"), { maxLength: 8 }),
)
const event = fc.record({ kind: fc.constantFrom(...kinds), subId: told })
const wanted: fc.Arbitrary<Wanted> = fc.record({ events_requested: requested, subjects: said })

const text = (value: unknown) => JSON.stringify(value)
const membersOf = (one: Subject): Readonly<Record<string, unknown>> => {
  const { format, ...members } = one
  return format === "complex" ? members : {}
}
const stands = (one: Subject, within: Subject) =>
  ["user", "application", "tenant"].some((role) => text(membersOf(within)[role]) === text(one))

/** Section 8.1.3.1 of the framework, word for word. */
const matching = (one: Subject, other: Subject): boolean => {
  if (one.format !== "complex" && other.format !== "complex") return text(one) === text(other)
  if (one.format !== "complex") return stands(one, other)
  if (other.format !== "complex") return stands(other, one)
  const [first, second] = [membersOf(one), membersOf(other)]
  return [...new Set([...Object.keys(first), ...Object.keys(second)])].every((field) =>
    !(field in first) || !(field in second) || text(first[field]) === text(second[field])
  )
}

describe("the events of a stream", () => {
  it("are all events where the receiver chose no types and no subjects", () => {
    fc.assert(fc.property(event, (one) => isFor(everything, one)))
    assert.isFalse(filtered(everything))
    assert.deepStrictEqual(eventsDelivered(null), eventsSupported)
  })

  it("are those of the requested types; an unknown type is ignored", () => {
    fc.assert(fc.property(requested, event, (events_requested, one) => {
      const expected = events_requested === null || events_requested.includes(lifecycleEventKinds[one.kind].uri)
      assert.strictEqual(isFor({ events_requested, subjects: [] }, one), expected)
    }))
    assert.deepStrictEqual(eventsDelivered(["urn:example:unknown"]), [])
  })

  it("an unfiltered stream gets every event, and a stream that can omit one counts as filtered", () => {
    fc.assert(fc.property(wanted, fc.array(event), (stream, events) => {
      const all = filterOf(stream)
      if (!filtered(stream)) assert.isTrue(events.every(all))
    }))
    assert.isTrue(filtered({ events_requested: eventsSupported.slice(1), subjects: [] }))
    assert.isTrue(filtered({ events_requested: [], subjects: [] }))
    assert.isTrue(filtered({ events_requested: null, subjects: [{ subject: user("a"), included: false }] }))
    assert.isFalse(filtered({ events_requested: [...eventsSupported], subjects: [] }))
  })

  it("subjects match as the framework says, symmetrically, and each matches itself", () => {
    fc.assert(fc.property(subject, subject, (one, other) => {
      assert.strictEqual(subjectsMatch(one, other), matching(one, other))
      assert.strictEqual(subjectsMatch(one, other), subjectsMatch(other, one))
      assert.isTrue(subjectsMatch(one, one))
    }))
  })

  it("an event is omitted only for a matching removed subject, and a removed subject's events are", () => {
    fc.assert(fc.property(said, event, (subjects, one) => {
      const stream = { events_requested: null, subjects }
      if (!isFor(stream, one)) {
        assert.isTrue(subjects.some(({ included, subject }) => !included && matching(subject, one.subId)))
      }
      const removed: SaidSubject = { subject: one.subId, included: false }
      assert.isFalse(isFor({ ...stream, subjects: [...subjects, removed] }, one))
      assert.isTrue(isFor({ ...stream, subjects: [...subjects, removed, { ...removed, included: true }] }, one))
    }))
  })

  it("a choice about one subject changes nothing for an event that it does not match", () => {
    fc.assert(fc.property(wanted, subject, fc.boolean(), event, (stream, other, included, one) => {
      if (matching(other, one.subId)) return
      const more = { ...stream, subjects: [...stream.subjects, { subject: other, included }] }
      assert.strictEqual(isFor(more, one), isFor(stream, one))
    }))
  })

  it("removing a user silences the user; removing one session keeps the end of all sessions", () => {
    const only = (...subjects: ReadonlyArray<SaidSubject>): Wanted => ({ events_requested: null, subjects })
    const removed = (one: Subject): SaidSubject => ({ subject: one, included: false })
    const of = (subId: Subject) => ({ kind: "session-revoked", subId }) as const
    const access = complex({ user: user("a"), application: opaque("p"), tenant: opaque("t") })

    for (const subId of [user("a"), access, complex({ user: user("a"), session: opaque("s") })]) {
      assert.isFalse(isFor(only(removed(user("a"))), of(subId)))
      assert.isFalse(isFor(only(removed(complex({ user: user("a") }))), of(subId)))
      assert.isTrue(isFor(only(removed(user("b"))), of(subId)))
    }
    const session = only(removed(complex({ user: user("a"), session: opaque("s") })))
    assert.isFalse(isFor(session, of(complex({ user: user("a"), session: opaque("s") }))))
    assert.isTrue(isFor(session, of(complex({ user: user("a"), session: opaque("other") }))))
    assert.isTrue(isFor(session, of(user("a"))))
    assert.isTrue(isFor(only(removed(complex({ device: opaque("d") }))), of(access)))
  })

  it("a user added again after the tenant was removed gets events", () => {
    const tenant = { subject: complex({ tenant: opaque("t") }), included: false }
    const added = { subject: user("a"), included: true }
    const access = (sub: string) => ({
      kind: "access-revoked" as const,
      subId: complex({ user: user(sub), application: opaque("p"), tenant: opaque("t") }),
    })
    const stream = { events_requested: null, subjects: [tenant, added] }
    assert.isTrue(isFor(stream, access("a")))
    assert.isFalse(isFor(stream, access("b")))
    assert.isFalse(isFor({ ...stream, subjects: [added, tenant] }, access("a")))
  })
})

describe("subject identifiers", () => {
  const decode = Schema.decodeUnknownExit(Subject)
  const taken = (value: unknown) => Exit.isSuccess(decode(value))

  it("are accepted in every registered format, and in an unregistered one", () => {
    const good = [
      { format: "account", uri: "acct:a@example.com" },
      { format: "email", email: "a@example.com" },
      { format: "iss_sub", iss: "https://id.example", sub: "1" },
      { format: "opaque", id: "1" },
      { format: "phone_number", phone_number: "+12065550100" },
      { format: "did", url: "did:example:123456" },
      { format: "uri", uri: "urn:uuid:4e851e98-83c4-4743-a5da-150ecb53042f" },
      { format: "aliases", identifiers: [{ format: "email", email: "a@example.com" }, { format: "opaque", id: "1" }] },
      { format: "jwt_id", iss: "https://id.example", jti: "1" },
      { format: "saml_assertion_id", issuer: "https://id.example", assertion_id: "_1" },
      { format: "ip-addresses", "ip-addresses": ["10.29.37.75", "2001:db8::8a2e:370:7334"] },
      { format: "phone", phone_number: "+12065550123" },
      { format: "complex", user: { format: "opaque", id: "1" }, tenant: { format: "opaque", id: "2" } },
      { format: "complex", fleet: { format: "aliases", identifiers: [{ format: "opaque", id: "1" }] } },
    ]
    for (const one of good) assert.isTrue(taken(one), text(one))
  })

  it("are refused if a member is missing, unknown or nested too deep", () => {
    const bad: ReadonlyArray<unknown> = [
      ...[null, "x", 1, [], {}, { format: "" }, { format: 1 }, { format: "opaque" }, { format: "vendor" }],
      ...[{ id: "1" }, { format: "opaque", id: "" }, { format: "opaque", id: 1 }, {
        format: "opaque",
        id: "1",
        x: "2",
      }],
      ...[{ format: "iss_sub", sub: "1" }, { format: "email", email: null }],
      ...[{ format: "aliases", identifiers: [] }, { format: "aliases", identifiers: "x" }],
      { format: "aliases", identifiers: [{ format: "aliases", identifiers: [{ format: "opaque", id: "1" }] }] },
      ...[{ format: "ip-addresses", "ip-addresses": [] }, { format: "ip-addresses", "ip-addresses": [1] }],
      ...[{ format: "complex" }, { format: "complex", user: "1" }, { format: "complex", user: { format: "opaque" } }],
      { format: "complex", user: { format: "complex", user: { format: "opaque", id: "1" } } },
      { format: "vendor", blob: "x".repeat(8_192) },
      JSON.parse(`{"format": "constructor"}`),
    ]
    for (const one of bad) assert.isFalse(taken(one), text(one))
  })
})
