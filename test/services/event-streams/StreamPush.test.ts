/** Push delivery, by the OpenID conformance suite's transmitter modules, and the cases that these leave open. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Queue } from "effect"
import { decodeJwt } from "jose"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { scimEvents, scimTwins } from "../../../schemas/identity/ScimTwins.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { knowsTwins } from "../../../services/event-streams/Streams/Configuration.ts"
import { twinIdOf } from "../../../services/event-streams/Streams/ScimTwin.ts"
import { closeToOlder } from "../../../services/platform/database/OlderPrograms.ts"
import { ownMessages } from "../../../services/event-streams/Streams/ControlMessages.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { verifyEvent } from "../../../sdk/Verify.ts"
import { until } from "../../e2e/support/Until.ts"
import { issuer } from "../../support/TestIdentity.ts"
import { scimFaults } from "../../support/ScimStructure.ts"
import {
  type Answer,
  beginEpoch,
  measured,
  placesOf,
  push,
  pushed,
  pushing,
  type Receiving,
  receiving,
  restsAt,
  rowOf,
  seen,
  shortDeadline,
  stream,
  streaming,
  subjects,
  tellAll,
} from "./StreamFixture.ts"
import { pinsFor, publicUrl } from "../lifecycle/LifecycleFixture.ts"

const enable = Effect.fnUntraced(function* ({ receiver }: Receiving, stream_id: string) {
  yield* (yield* Streams).setStatus(receiver, { stream_id, status: "enabled" })
})

const revoke = Effect.fnUntraced(function* ({ administrator: personId, grantId, project: projectId }: Receiving) {
  yield* run((yield* ServiceGrants).revoke({ personId, projectId, grantId, reason: "over and out" }))
})

const failures = 6

layer(streaming({ failuresInARow: failures }), { excludeTestServices: true })("Pushing", (it) => {
  it.effect("push with and without authorization: signed events by position, then a verification", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { arrivals, heard, url } = yield* pushed()
      const secret = "Bearer for-the-receiver-alone"
      const streamId = yield* stream(here, push(url("/with"), secret))
      const plain = yield* stream(here, push(url("/without")))
      const before = (yield* placesOf(here)).head
      const ids = yield* tellAll(here, subjects(8))
      const { addVerification } = yield* ownMessages(publicUrl)
      yield* addVerification(streamId, "state")
      yield* Queue.takeN(heard, 17)
      const at = (path: string) => arrivals.filter((arrival) => arrival.path === path)
      assert.deepStrictEqual(at("/with").slice(0, 8).map(({ jti }) => jti), [...ids])
      assert.deepStrictEqual(at("/without").map(({ jti }) => jti), [...ids])
      const { event, sub_id, type } = at("/with")[8]!
      assert.deepStrictEqual({ event, sub_id, type }, {
        event: { state: "state" },
        sub_id: { format: "opaque", id: streamId },
        type: "verification",
      })
      const pins = yield* pinsFor(here.project)
      for (const { headers, path, token, type } of arrivals) {
        assert.strictEqual(headers["content-type"], "application/secevent+jwt")
        assert.strictEqual(headers.accept, "application/json")
        assert.strictEqual(headers.authorization, path === "/with" ? secret : undefined)
        if (type !== "verification") yield* Effect.promise(() => verifyEvent(token, pins))
      }
      for (const id of [streamId, plain]) yield* restsAt(id, before + 8)
      assert.isNotNull((yield* seen(streamId, ({ verified_at }) => verified_at !== null)).verified_at)
      const { counted, delivered } = yield* placesOf(here)
      assert.strictEqual(delivered, before + 8)
      assert.isAtLeast(counted, 1)
      assert.isAtLeast(yield* measured("push"), 16)
      assert.strictEqual((yield* tellAll(here, ["one more"]))[0], (yield* Queue.take(heard)).jti)
    }))

  it.effect("breaker: a failing stream is paused, told so and held, and goes on there once enabled", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      let broken = true
      const taken: Array<string> = []
      const { arrivals, url } = yield* pushed(({ jti, type }) => {
        if (broken && type !== "stream-updated") return 500
        taken.push(type === "stream-updated" ? type : jti)
        return 202
      })
      const streamId = yield* stream(here, push(url()))
      const ids = yield* tellAll(here, subjects(2))
      const { last_error, status_by, status_reason } = yield* seen(streamId, ({ status }) => status === "paused")
      assert.deepStrictEqual([last_error, status_by, status_reason], ["status 500", "transmitter", "not_answering"])
      yield* until("what it was told", Effect.sync(() => taken), ({ length }) => length > 0)
      assert.deepStrictEqual(arrivals.map(({ jti, type }) => type === "stream-updated" ? type : jti), [
        ...Array.from({ length: failures }, () => ids[0]),
        "stream-updated",
      ])
      assert.deepStrictEqual(arrivals.at(-1)!.event, { status: "paused", reason: "not_answering" })
      const [later] = yield* tellAll(here, ["held"])
      broken = false
      yield* enable(here, streamId)
      yield* until("what was held", Effect.sync(() => taken), ({ length }) => length === 4)
      assert.deepStrictEqual(taken, ["stream-updated", ...ids, later])
    }))

  it.effect("a receiver that refuses even the notice of its pause gets it a few times, then no more", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { arrivals, url } = yield* pushed(() => 503)
      const streamId = yield* stream(here, push(url()))
      yield* tellAll(here, ["a"])
      const { sql } = yield* Database
      yield* until(
        "given up",
        sql`select from lifecycle_stream_messages where stream_id = ${streamId}::uuid and delivered_at is not null`,
        ({ length }) => length === 1,
      )
      const types = arrivals.map(({ type }) => type)
      assert.deepStrictEqual(types.slice(0, failures), types.slice(0, failures).fill("session-revoked"))
      assert.deepStrictEqual(types.slice(failures), Array.from({ length: 5 }, () => "stream-updated"))
      assert.strictEqual((yield* rowOf(streamId)).status, "paused")
    }))

  it.effect("invalid_key pauses at once", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { arrivals, url } = yield* pushed(({ type }) => type === "stream-updated" ? 202 : { err: "invalid_key" })
      const streamId = yield* stream(here, push(url()))
      yield* tellAll(here, subjects(3))
      const { last_error, status_reason } = yield* seen(
        streamId,
        ({ claim, status }) => status === "paused" && claim === null,
      )
      assert.deepStrictEqual([last_error, status_reason], ["invalid_key", "invalid_key"])
      yield* until("what it was told", Effect.sync(() => arrivals), ({ length }) => length === 2)
      assert.deepStrictEqual(arrivals.map(({ type }) => type), ["session-revoked", "stream-updated"])
    }))

  it.effect("nothing is sent after a grant is revoked in mid-stream, not even a notice of the pause", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const [third, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const { arrivals, url } = yield* pushed((_, nth) => {
        if (nth !== 3) return 202
        Deferred.doneUnsafe(third, Effect.void)
        return Effect.runPromise(Effect.as(Deferred.await(go), 202))
      })
      const streamId = yield* stream(here, push(url()))
      const before = (yield* placesOf(here)).head
      yield* tellAll(here, subjects(10))
      yield* Deferred.await(third)
      yield* revoke(here)
      yield* Deferred.succeed(go, undefined)
      const { position, status_reason } = yield* seen(
        streamId,
        ({ claim, status }) => status === "paused" && claim === null,
      )
      assert.deepStrictEqual([position, status_reason], [before + 3, "grant_not_standing"])
      assert.lengthOf(arrivals, 3)
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from lifecycle_stream_messages where stream_id = ${streamId}::uuid`, 0)
    }))

  it.effect("a receiver's pause or disable in mid-stream lets no push begin and settles the accepted one", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const [second, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const { arrivals, heard, url } = yield* pushed((_, nth) => {
        if (nth !== 2) return 202
        Deferred.doneUnsafe(second, Effect.void)
        return Effect.runPromise(Effect.as(Deferred.await(go), 202))
      })
      const streamId = yield* stream(here, push(url()))
      const before = (yield* placesOf(here)).head
      const ids = yield* tellAll(here, subjects(4))
      yield* Deferred.await(second)
      const { setStatus } = yield* Streams
      yield* setStatus(here.receiver, { stream_id: streamId, status: "paused" })
      yield* Deferred.succeed(go, undefined)
      yield* restsAt(streamId, before + 2)
      assert.lengthOf(arrivals, 2)
      yield* enable(here, streamId)
      yield* Queue.takeN(heard, 4)
      assert.deepStrictEqual(arrivals.map(({ jti }) => jti), [...ids])
      yield* setStatus(here.receiver, { stream_id: streamId, status: "disabled" })
      yield* tellAll(here, ["dropped"])
      yield* enable(here, streamId)
      const [last] = yield* tellAll(here, ["heard"])
      assert.strictEqual((yield* Queue.take(heard)).jti, last)
    }))

  it.effect("after a restore the stream pauses and says so, and goes on at the head once enabled", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      const { heard, url } = yield* pushed()
      const streamId = yield* stream(here, push(url()))
      yield* beginEpoch(here)
      yield* tellAll(here, ["not told"])
      assert.deepStrictEqual((yield* Queue.take(heard)).event, { status: "paused", reason: "epoch_changed" })
      yield* seen(streamId, ({ claim }) => claim === null)
      yield* enable(here, streamId)
      const [told] = yield* tellAll(here, ["told"])
      assert.strictEqual((yield* Queue.take(heard)).jti, told)
    }))
})

layer(streaming({ failuresInARow: 10_000 }), { excludeTestServices: true })("Pushing without a breaker", (it) => {
  it.effect("a filtered stream keeps order per subject, and a refused event delays no other subject", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      let sick = true
      const taken: Array<string> = []
      const { url } = yield* pushed(({ jti, sub_id }) => {
        if (sick && sub_id.sub === "sick") return { err: "invalid_request", description: "unknown person" }
        taken.push(jti)
        return 202
      })
      const wanted = [lifecycleEventKinds["session-revoked"].uri, lifecycleEventKinds["account-enabled"].uri]
      const streamId = yield* stream(here, { ...push(url()), events_requested: wanted })
      const before = (yield* placesOf(here)).head
      yield* (yield* Streams).say(here.receiver, streamId, { format: "iss_sub", iss: issuer, sub: "left out" }, false)
      const [s1, , w1] = yield* tellAll(here, ["sick", "left out", "well"])
      const [s2, w2] = yield* tellAll(here, ["sick", "well"], "account-enabled")
      yield* tellAll(here, ["sick"], "account-disabled")
      yield* until("the well one", Effect.sync(() => taken), ({ length }) => length === 2)
      assert.deepStrictEqual(taken, [w1, w2])
      const held = yield* seen(streamId, ({ reached }) => Number(reached) === before + 6)
      assert.strictEqual(held.position, before)
      sick = false
      yield* restsAt(streamId, before + 6)
      assert.deepStrictEqual(taken, [w1, w2, s1, s2])
      assert.isNull((yield* rowOf(streamId)).reached)
      const { sql } = yield* Database
      assert.lengthOf(yield* sql`select from lifecycle_stream_failing where stream_id = ${streamId}::uuid`, 0)
      assert.isNull((yield* placesOf(here)).delivered)
    }))

  it.effect("twins of RFC 9967 are pushed in the order of a person's events, and again as they were", () =>
    Effect.gen(function* () {
      yield* pushing
      const here = yield* receiving
      let sick = true
      const { arrivals, url } = yield* pushed(() => sick ? 503 : 202)
      yield* closeToOlder(knowsTwins)
      yield* (yield* Database).owner`update schema_meta set closed_at = 'epoch'`
      const streamId = yield* stream(here, { ...push(url()), events_requested: scimEvents })
      const before = (yield* placesOf(here)).head
      const kinds = ["access-granted", "token-claims-change", "account-purged", "access-revoked"] as const
      const ids: Array<string> = []
      for (const kind of kinds) ids.push(...yield* tellAll(here, ["a"], kind))
      yield* tellAll(here, ["a"], "session-revoked")
      yield* until("a retry", Effect.sync(() => arrivals.length), (n) => n > 1)
      const [first, again] = arrivals
      assert.strictEqual(again!.token, first!.token)
      sick = false
      yield* restsAt(streamId, before + 5)
      const taken = new Map(arrivals.map(({ jti, token }) => [jti, token]))
      assert.deepStrictEqual([...taken.keys()], ids.map(twinIdOf))
      const claims = [...taken.values()].map((token) => decodeJwt(token))
      assert.deepStrictEqual(claims.flatMap(scimFaults), [])
      assert.deepStrictEqual(claims.map(({ events }) => events), [
        { [scimTwins["access-granted"]!.uri]: {} },
        { [scimTwins["token-claims-change"]!.uri]: { attributes: ["roles"] } },
        { [scimTwins["account-purged"]!.uri]: {} },
        { [scimTwins["access-revoked"]!.uri]: {} },
      ])
    }))
})

layer(streaming({ failuresInARow: 10_000 }, shortDeadline), { excludeTestServices: true })(
  "Pushing with a short deadline",
  (it) => {
    it.effect("a receiver that fails, cuts and stalls gets every event in strict order", () =>
      Effect.gen(function* () {
        yield* pushing
        const here = yield* receiving
        const spoilt: ReadonlyArray<Answer> = [
          500,
          "reset",
          "silence",
          202,
          { err: "invalid_request" },
          200,
          202,
          202,
          503,
        ]
        let n = 0
        const taken: Array<string> = []
        const { url } = yield* pushed(({ jti }) => {
          const answer = spoilt[n++] ?? 202
          if (answer === 202) taken.push(jti)
          return answer
        })
        const streamId = yield* stream(here, push(url()))
        const before = (yield* placesOf(here)).head
        const ids = yield* tellAll(here, subjects(6))
        yield* restsAt(streamId, before + 6)
        // An event whose 202 came after the deadline was sent once more, at once.
        assert.deepStrictEqual(taken.filter((jti, n) => jti !== taken[n - 1]), [...ids])
        assert.deepStrictEqual((yield* rowOf(streamId)).attempts, 0)
        assert.isNull((yield* rowOf(streamId)).last_error)
      }))
  },
)
