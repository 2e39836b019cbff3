/** Twins of RFC 9967, as a function of an event's message. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import {
  eventsSupported,
  type LifecycleEventKind,
  lifecycleEventKinds,
} from "../../../schemas/identity/LifecycleEventKinds.ts"
import { scimEvents, scimTwins } from "../../../schemas/identity/ScimTwins.ts"
import { eventIdOf, twinIdOf, twinOf } from "../../../services/event-streams/Streams/ScimTwin.ts"
import {
  deliversTwin,
  eventsDelivered,
  eventsOffered,
  filtered,
  filterOf,
} from "../../../services/event-streams/Streams/StreamSubjects.ts"
import { scimFaults } from "../../support/ScimStructure.ts"

const kinds = Object.keys(lifecycleEventKinds) as ReadonlyArray<LifecycleEventKind>

const user = fc.record({ format: fc.constant("iss_sub"), iss: fc.webUrl(), sub: fc.string({ minLength: 1 }) })
const opaque = fc.record({ format: fc.constant("opaque"), id: fc.string({ minLength: 1 }) })
const subject = fc.oneof(
  user,
  opaque,
  fc.record({ format: fc.constant("complex"), application: opaque, tenant: opaque }),
  fc.record({ format: fc.constant("complex"), user, application: opaque, tenant: opaque }),
)
const source = fc.record({
  iss: fc.webUrl(),
  jti: fc.uuid({ version: 7 }),
  iat: fc.nat(),
  aud: fc.string({ minLength: 1 }),
  txn: fc.uuid({ version: 7 }),
  sub_id: subject,
})
const personId = fc.option(fc.string({ minLength: 1, unit: "grapheme" }))
const kind = fc.constantFrom(...kinds)
const requested = fc.option(fc.uniqueArray(fc.constantFrom(...eventsSupported, ...scimEvents, "urn:example:unknown")))

describe("the twin of an event", () => {
  it("is at most one, the same each time, with the structure of RFC 9967 and the claims of its event", () => {
    fc.assert(fc.property(source, kind, personId, (claims, ofKind, id) => {
      const twin = twinOf(claims, ofKind, id)
      assert.deepStrictEqual(twin, twinOf(structuredClone(claims), ofKind, id))
      const aboutPerson = "user" in claims.sub_id || claims.sub_id.format === "iss_sub"
      assert.strictEqual(twin !== null, ofKind in scimTwins && aboutPerson && id !== null)
      if (twin === null) return
      assert.deepStrictEqual(scimFaults(twin), [])
      assert.deepStrictEqual(
        [twin.iss, twin.aud, twin.iat, twin.txn],
        [claims.iss, claims.aud, claims.iat, claims.txn],
      )
      assert.deepStrictEqual(Object.keys(twin.events), [scimTwins[ofKind]!.uri])
    }))
  })

  it("is what the page on streams shows", () => {
    const page = readFileSync(fileURLToPath(new URL("../../../docs/streams.md", import.meta.url)), "utf8")
    const shown = JSON.parse(/^```json\n([\s\S]*?)^```$/m.exec(page)![1]!)
    assert.deepStrictEqual(scimFaults(shown), [])
    const { aud, iat, iss, jti, sub_id: { externalId, uri }, txn } = shown
    const claims = { aud, iat, iss, jti: eventIdOf(jti), txn, sub_id: { format: "iss_sub", iss, sub: externalId } }
    assert.deepStrictEqual(twinOf(claims, "access-revoked", uri.slice("/Users/".length)), shown)
  })

  it("has an id that no event has, from which the event's follows", () => {
    fc.assert(fc.property(fc.uuid({ version: 7 }), (id) => {
      assert.notStrictEqual(twinIdOf(id), id)
      assert.strictEqual(eventIdOf(twinIdOf(id)), id)
      assert.strictEqual(eventIdOf(id), id)
    }))
  })

  it("has a type that no other kind's twin has", () => {
    assert.lengthOf(new Set(scimEvents), scimEvents.length)
    assert.isEmpty(scimEvents.filter((uri) => eventsSupported.includes(uri)))
  })
})

describe("a stream", () => {
  it("gets an event in one form, its own where it asks for both, and says which types come", () => {
    fc.assert(fc.property(requested, kind, (uris, ofKind) => {
      const own = uris === null || uris.includes(lifecycleEventKinds[ofKind].uri)
      const twin = scimTwins[ofKind]?.uri
      const asTwin = !own && twin !== undefined && uris.includes(twin)
      assert.strictEqual(deliversTwin(uris, ofKind), asTwin)
      const subId = { format: "iss_sub", iss: "https://id.example", sub: "a" }
      assert.strictEqual(filterOf({ events_requested: uris, subjects: [] })({ kind: ofKind, subId }), own || asTwin)
      const delivered = eventsDelivered(uris)
      assert.strictEqual(delivered.includes(lifecycleEventKinds[ofKind].uri), own)
      if (twin !== undefined) assert.strictEqual(delivered.includes(twin), asTwin)
      const offered = eventsOffered(uris)
      assert.isEmpty(delivered.filter((uri) => !offered.includes(uri)))
    }))
  })

  it("that asks for no type of RFC 9967 sees none, and one that gets a twin promises no positions", () => {
    fc.assert(fc.property(requested, (uris) => {
      const asks = uris?.some((uri) => scimEvents.includes(uri)) ?? false
      assert.strictEqual(eventsOffered(uris).some((uri) => scimEvents.includes(uri)), asks)
      if (kinds.some((one) => deliversTwin(uris, one))) {
        assert.isTrue(filtered({ events_requested: uris, subjects: [] }))
      }
    }))
    const swapped = [...eventsSupported.filter((uri) => uri !== lifecycleEventKinds["access-granted"].uri)]
    assert.isTrue(filtered({ events_requested: [...swapped, scimTwins["access-granted"]!.uri], subjects: [] }))
    assert.deepStrictEqual(eventsDelivered(null), eventsSupported)
  })

  it("gets no twin of an event that is about no person", () => {
    const wants = filterOf({ events_requested: scimEvents, subjects: [] })
    const application = { format: "opaque", id: "p" }
    assert.isFalse(wants({ kind: "access-granted", subId: { format: "complex", application, tenant: application } }))
    assert.isFalse(wants({ kind: "account-disabled", subId: application }))
  })
})
