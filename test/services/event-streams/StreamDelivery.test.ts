/** Poll delivery, by the OpenID conformance suite's transmitter modules, and the cases that these leave open. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createLocalJWKSet, decodeJwt, jwtVerify } from "jose"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { scimEvents, scimTwins } from "../../../schemas/identity/ScimTwins.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { agendas } from "../../../services/event-streams/StreamDelivery/PushBatch.ts"
import { PushState } from "../../../services/event-streams/StreamDelivery/PushState.ts"
import { servedStreams } from "../../../services/event-streams/StreamDelivery/StreamRecord.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { knowsTwins } from "../../../services/event-streams/Streams/Configuration.ts"
import { twinIdOf } from "../../../services/event-streams/Streams/ScimTwin.ts"
import { closeToOlder } from "../../../services/platform/database/OlderPrograms.ts"
import { streamStatus } from "../../../services/event-streams/Streams/Status.ts"
import { ownMessages } from "../../../services/event-streams/Streams/ControlMessages.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { verifyEvent } from "../../../sdk/Verify.ts"
import {
  beginEpoch,
  idsIn,
  measured,
  placesOf,
  poll,
  push,
  pushed,
  readSet,
  receiving,
  rowOf,
  stream,
  streaming,
  subjects,
  tellAll,
  typesIn,
} from "./StreamFixture.ts"
import { pinsFor, publicUrl, signAll } from "../lifecycle/LifecycleFixture.ts"
import { tagOf } from "../../support/Fixtures.ts"
import { scimFaults } from "../../support/ScimStructure.ts"

layer(streaming(), { excludeTestServices: true })("Polling", (it) => {
  it.effect("poll-only: a poll gives events by position, as signed, again until acknowledged", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const { head } = yield* placesOf(here)
      const ids = yield* tellAll(here, subjects(5))
      const first = yield* poll(here, streamId)
      assert.deepStrictEqual([idsIn(first), first.moreAvailable], [[...ids], false])
      const pins = yield* pinsFor(here.project)
      const events = yield* Effect.forEach(
        Object.values(first.sets),
        (token) => Effect.promise(() => verifyEvent(token, pins)),
      )
      assert.deepStrictEqual(events.map(({ position }) => position), subjects(5).map((_, i) => head + 1 + i))
      assert.deepStrictEqual(yield* poll(here, streamId), first)
      const some = yield* poll(here, streamId, { maxEvents: 2 })
      assert.deepStrictEqual([idsIn(some), some.moreAvailable], [ids.slice(0, 2), true])
      assert.strictEqual((yield* placesOf(here)).delivered, null)
    }))

  it.effect("ack-only, poll-and-ack: acknowledged events, in any order, are settled and not given again", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const before = (yield* placesOf(here)).head
      const [a, b, c, d, e] = yield* tellAll(here, subjects(5))
      const ackOnly = (...ack: ReadonlyArray<string>) => poll(here, streamId, { maxEvents: 0, ack })
      assert.deepStrictEqual(yield* ackOnly(b!, d!, "unknown", crypto.randomUUID()), { sets: {}, moreAvailable: true })
      assert.strictEqual((yield* rowOf(streamId)).position, before)
      assert.strictEqual((yield* placesOf(here)).delivered, null)
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [a, c, e])
      const next = yield* poll(here, streamId, { ack: [a!] })
      assert.deepStrictEqual(idsIn(next), [c, e])
      assert.strictEqual((yield* rowOf(streamId)).position, before + 2)
      assert.strictEqual((yield* placesOf(here)).delivered, before + 2)
      assert.deepStrictEqual(yield* ackOnly(e!, a!, c!), { sets: {}, moreAvailable: false })
      assert.strictEqual((yield* rowOf(streamId)).position, before + 5)
      const { counted, delivered } = yield* placesOf(here)
      assert.strictEqual(delivered, before + 5)
      assert.isAtLeast(counted, 1)
      assert.isAtLeast(yield* measured("poll"), 5)
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from lifecycle_stream_settled where stream_id = ${streamId}::uuid`, 0)
      const [f] = yield* tellAll(here, ["later"])
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [f])
    }))

  it.effect("concurrent acknowledgements lose nothing and settle no other event", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const before = (yield* placesOf(here)).head
      const ids = yield* tellAll(here, subjects(12))
      const parts = [0, 1, 2].map((part) => ids.filter((_, i) => i % 3 === part && i !== 7))
      yield* Effect.forEach(parts, (ack) => poll(here, streamId, { ack }), { concurrency: "unbounded" })
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [ids[7]])
      assert.strictEqual((yield* rowOf(streamId)).position, before + 7)
      yield* poll(here, streamId, { ack: [ids[7]!] })
      assert.strictEqual((yield* rowOf(streamId)).position, before + 12)
    }))

  it.effect("long poll: the next event answers it; verification events come behind other events", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const waiting = yield* Effect.forkChild(poll(here, streamId, { waitMillis: 600_000 }))
      const [a] = yield* tellAll(here, ["first"])
      assert.deepStrictEqual(idsIn(yield* Fiber.join(waiting)), [a])

      const [b] = yield* tellAll(here, ["second"])
      yield* (yield* Streams).verify(here.receiver, { stream_id: streamId, state: "VGhpcw" })
      const [c] = yield* tellAll(here, ["third"])
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId, { maxEvents: 1 })), [a])
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId, { maxEvents: 1, ack: [a!] })), [b])
      const verification = yield* poll(here, streamId, { maxEvents: 1, ack: [b!] })
      const [token] = Object.values(verification.sets)
      const { aud, event, iss, jti, position, sub_id, type } = readSet(token!)
      assert.deepStrictEqual({ aud, event, iss, position, sub_id, type }, {
        aud: `urn:bailiwick:project:${here.project}`,
        event: { state: "VGhpcw" },
        iss: "https://id.example/lifecycle",
        position: null,
        sub_id: { format: "opaque", id: streamId },
        type: "verification",
      })
      assert.isTrue(verification.moreAvailable)
      assert.isNull((yield* rowOf(streamId)).verified_at)
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId, { ack: [jti] })), [c])
      assert.isNotNull((yield* rowOf(streamId)).verified_at)

      const { addVerification } = yield* ownMessages(publicUrl)
      yield* addVerification(streamId, null)
      const all = yield* poll(here, streamId)
      assert.deepStrictEqual([idsIn(all)[0], typesIn(all)[1]], [c, "verification"])
      assert.deepStrictEqual(readSet(Object.values(all.sets)[1]!).event, {})
    }))

  it.effect("setErrs: the reason is kept and the rest goes on; invalid_key stops the stream and says so first", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const before = (yield* placesOf(here)).head
      const [a, b, c] = yield* tellAll(here, subjects(3))
      const err = { err: "invalid_audience", description: "not\u0007 for\nme" }
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId, { setErrs: { [a!]: err } })), [b, c])
      const kept = yield* rowOf(streamId)
      assert.deepStrictEqual([kept.status, kept.position, kept.last_error], [
        "enabled",
        before + 1,
        "invalid_audience: not for me",
      ])
      const stopped = yield* poll(here, streamId, { ack: [c!], setErrs: { [b!]: { err: "invalid_key" } } })
      assert.deepStrictEqual(typesIn(stopped), ["stream-updated"])
      const [updated] = Object.values(stopped.sets)
      assert.deepStrictEqual(readSet(updated!).event, { status: "paused", reason: "invalid_key" })
      const { last_error, position, status, status_by, status_reason } = yield* rowOf(streamId)
      assert.deepStrictEqual({ last_error, position, status, status_by, status_reason }, {
        last_error: "invalid_key",
        position: before + 1,
        status: "paused",
        status_by: "transmitter",
        status_reason: "invalid_key",
      })
      assert.deepStrictEqual(yield* poll(here, streamId, { ack: idsIn(stopped) }), { sets: {}, moreAvailable: false })
      yield* (yield* Streams).setStatus(here.receiver, { stream_id: streamId, status: "enabled" })
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [b])
      const { sql } = yield* Database
      const audited = yield* sql<{ action: string; code: string | null }>`
        select action, code from audit_records where subject = ${`lifecycle-stream:${streamId}`} order by at, id`
      assert.deepStrictEqual(audited.map(({ action, code }) => [action.split(".").at(-1), code]), [
        ...[["created", null], ["refused", "invalid_audience"], ["refused", "invalid_key"], ["status", null]],
        ["status", null],
      ])
    }))

  it.effect("a paused stream holds events and verifications, a disabled one drops them", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const { setStatus } = yield* Streams
      const { addVerification } = yield* ownMessages(publicUrl)
      const become = (status: "enabled" | "paused" | "disabled") =>
        setStatus(here.receiver, { stream_id: streamId, status, reason: "because" })
      const [a] = yield* tellAll(here, ["a"])
      yield* become("paused")
      const [b] = yield* tellAll(here, ["b"])
      yield* addVerification(streamId, "held")
      assert.deepStrictEqual(yield* poll(here, streamId), { sets: {}, moreAvailable: false })
      const waiting = yield* Effect.forkChild(poll(here, streamId, { waitMillis: 600_000 }))
      yield* become("enabled")
      const held = yield* Fiber.join(waiting)
      assert.deepStrictEqual([...idsIn(held).slice(0, 2), ...typesIn(held).slice(2)], [a, b, "verification"])

      yield* become("disabled")
      yield* tellAll(here, ["c"])
      yield* addVerification(streamId, "dropped")
      assert.deepStrictEqual(yield* poll(here, streamId), { sets: {}, moreAvailable: false })
      yield* become("enabled")
      assert.deepStrictEqual(yield* poll(here, streamId), { sets: {}, moreAvailable: false })
      const [d] = yield* tellAll(here, ["d"])
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [d])
    }))

  it.effect("poll endpoint: another service's stream, a push stream, a missing and an ended grant are refused", () =>
    Effect.gen(function* () {
      const [here, there] = [yield* receiving, yield* receiving]
      const streamId = yield* stream(here)
      const { url } = yield* pushed()
      assert.strictEqual(yield* tagOf(poll(there, streamId)), "NotFound")
      assert.strictEqual(yield* tagOf(poll(here, crypto.randomUUID())), "NotFound")
      assert.strictEqual(yield* tagOf(poll(here, "no id")), "NotFound")
      assert.strictEqual(yield* tagOf(poll(here, yield* stream(here, push(url())))), "NotFound")
      const nobody = { receiver: { issuer: here.receiver.issuer, clientId: "nobody" } }
      assert.strictEqual(yield* tagOf(poll(nobody, streamId)), "CapabilityRequired")
      const waiting = yield* Effect.forkChild(tagOf(poll(here, streamId, { waitMillis: 600_000 })))
      const { revoke } = yield* ServiceGrants
      const { administrator: personId, grantId, project: projectId } = here
      yield* run(revoke({ personId, projectId, grantId, reason: "over and out" }))
      assert.strictEqual(yield* Fiber.join(waiting), "CapabilityRequired")
      const [a] = yield* tellAll(here, ["a"])
      assert.strictEqual(yield* tagOf(poll(here, streamId, { ack: [a!] })), "CapabilityRequired")
    }))

  it.effect("a pruned message blocks no later one", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const before = (yield* placesOf(here)).head
      const ids = yield* tellAll(here, subjects(4))
      const { owner } = yield* Database
      yield* owner`delete from lifecycle_messages where project_id = ${here.project} and position <= ${before + 2}`
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), ids.slice(2))
      yield* poll(here, streamId, { ack: ids.slice(2) })
      assert.strictEqual((yield* rowOf(streamId)).position, before + 4)
    }))

  it.effect("a message withdrawn for a new signature is not passed over, pushed or polled, filtered or not", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const { url } = yield* pushed()
      const events_requested = [lifecycleEventKinds["session-revoked"].uri]
      const whole = yield* stream(here)
      const part = yield* stream(here, { events_requested })
      const streams = [yield* stream(here, push(url())), yield* stream(here, { ...push(url()), events_requested })]
      const before = (yield* placesOf(here)).head
      const ids = yield* tellAll(here, subjects(4))
      const { owner } = yield* Database
      const { read } = yield* servedStreams
      const held = yield* Effect.forEach(streams, (id) => read(owner`t.id = ${id}::uuid`))
      yield* owner.withTransaction(Effect.gen(function* () {
        yield* owner`delete from lifecycle_messages where project_id = ${here.project} and position > ${before + 1}`
        yield* owner`update lifecycle_signed set position = ${before + 1} where project_id = ${here.project}`
      }))
      for (const id of [whole, part]) {
        assert.deepStrictEqual(idsIn(yield* poll(here, id)), ids.slice(0, 1))
        assert.deepStrictEqual(idsIn(yield* poll(here, id, { ack: [ids[0]!] })), [])
        assert.strictEqual((yield* rowOf(id)).position, before + 1)
      }
      // A reader that read the stream's row before the withdrawal asks for the messages after it.
      const agendaOf = yield* agendas
      for (const served of held) {
        const claimed = { id: served!.id, claim: 0n, attempts: 1, lease_until: new Date(0), failing_since: null }
        const { items, upTo } = yield* agendaOf(served!, new PushState({ ...claimed, last_error: null }), null)
        assert.deepStrictEqual([items.map(({ id }) => id), upTo], [ids.slice(0, 1), before + 1])
      }
      yield* signAll
      for (const id of [whole, part]) assert.deepStrictEqual(idsIn(yield* poll(here, id)), ids.slice(1))
    }))

  it.effect("twins of RFC 9967: own messages, whose acknowledgement settles the event; other streams stay as they were", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const whole = yield* stream(here)
      yield* closeToOlder(knowsTwins)
      yield* (yield* Database).owner`update schema_meta set closed_at = 'epoch'`
      const streamId = yield* stream(here, {
        events_requested: [...scimEvents, lifecycleEventKinds["account-enabled"].uri],
      })
      const before = (yield* placesOf(here)).head
      const [granted] = yield* tellAll(here, ["a"], "access-granted")
      yield* tellAll(here, ["a"])
      const [disabled, enabled] = [
        ...yield* tellAll(here, ["a b"], "account-disabled"),
        ...yield* tellAll(here, ["a"], "account-enabled"),
      ]
      const jwks = createLocalJWKSet(yield* Effect.map((yield* SigningKeys).jwks, ({ keys }) => ({ keys: [...keys] })))
      const read = yield* poll(here, streamId)
      assert.deepStrictEqual(idsIn(read), [twinIdOf(granted!), twinIdOf(disabled!), enabled])
      const source = yield* poll(here, whole)
      const tokens = yield* Effect.forEach(
        idsIn(read).slice(0, 2),
        (jti) =>
          Effect.promise(() =>
            jwtVerify(read.sets[jti]!, jwks, {
              algorithms: ["RS256"],
              typ: "secevent+jwt",
              issuer: `${publicUrl.origin}/lifecycle`,
              audience: `urn:bailiwick:project:${here.project}`,
            })
          ),
      )
      for (const [i, { payload }] of tokens.entries()) {
        assert.deepStrictEqual(scimFaults(payload), [])
        const { iat, txn } = decodeJwt(source.sets[[granted, disabled][i]!]!)
        assert.deepStrictEqual([payload.iat, payload["txn"]], [iat, txn])
      }
      assert.deepStrictEqual(tokens.map(({ payload }) => [payload["sub_id"], payload["events"]]), [
        [{ format: "scim", uri: "/Users/a", externalId: "a" }, { [scimTwins["access-granted"]!.uri]: {} }],
        [{ format: "scim", uri: "/Users/a%20b", externalId: "a b" }, { [scimTwins["account-disabled"]!.uri]: {} }],
      ])
      // Given again as it was, until it is acknowledged by its own id; then the position moves over it.
      assert.deepStrictEqual(yield* poll(here, streamId), read)
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId, { ack: [twinIdOf(granted!)] })), idsIn(read).slice(1))
      assert.strictEqual((yield* rowOf(streamId)).position, before + 2)
      yield* poll(here, streamId, { ack: [enabled!], setErrs: { [twinIdOf(disabled!)]: { err: "invalid_request" } } })
      assert.strictEqual((yield* rowOf(streamId)).position, before + 4)
      // Nothing of it touched the other stream.
      assert.deepStrictEqual(yield* poll(here, whole), source)
      assert.deepStrictEqual((yield* rowOf(whole)).position, before)
    }))

  it.effect("after a restore the stream stops and says why, and goes on at the head once enabled", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      yield* tellAll(here, ["before"])
      yield* beginEpoch(here)
      const stopped = yield* poll(here, streamId)
      assert.deepStrictEqual(Object.values(stopped.sets).map((token) => readSet(token).event), [
        { status: "paused", reason: "epoch_changed" },
      ])
      yield* (yield* Streams).setStatus(here.receiver, { stream_id: streamId, status: "enabled" })
      const { position, status } = yield* rowOf(streamId)
      assert.deepStrictEqual({ position, status }, { position: 0, status: "enabled" })
      const [a] = yield* tellAll(here, ["after"])
      assert.deepStrictEqual(idsIn(yield* poll(here, streamId)), [a])
    }))

  it.effect("the transmitter pauses no disabled, paused or deleted stream", () =>
    Effect.gen(function* () {
      const here = yield* receiving
      const streamId = yield* stream(here)
      const { setStatus } = yield* streamStatus(publicUrl)
      const pause = setStatus(streamId, "paused", { by: "transmitter", reason: "test" })
      assert.isFalse(yield* setStatus(streamId, "paused", { by: "transmitter", reason: "test", claim: 1n }))
      assert.isTrue(yield* pause)
      assert.isFalse(yield* pause)
      const { remove, setStatus: set } = yield* Streams
      yield* set(here.receiver, { stream_id: streamId, status: "disabled" })
      assert.isFalse(yield* pause)
      assert.deepStrictEqual(yield* poll(here, streamId), { sets: {}, moreAvailable: false })
      yield* remove(here.receiver, streamId)
      assert.isFalse(yield* pause)
    }))
})
