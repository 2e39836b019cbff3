import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose"
import { EventSigner } from "../../../services/lifecycle/EventSigner.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Bus, type BusMessage } from "../../../services/platform/messaging/Bus.ts"
import { Failpoints } from "../../../services/platform/Failpoints.ts"
import { genesis } from "../../../services/platform/security/CanonicalJson.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { verifyEvent } from "../../../sdk/Verify.ts"
import { access, person } from "../../support/TestIdentity.ts"
import { everything, pinsFor, scene, signAll, transmitter } from "./LifecycleFixture.ts"

/** The project's messages on the broker, in its order. */
const onTheBus = Effect.fnUntraced(function* (project: string, n: number) {
  const bus = yield* Bus
  const { relay } = yield* Outbox
  const heard = yield* Queue.unbounded<BusMessage>()
  yield* Effect.eventually(bus.heal)
  yield* bus.consume({
    stream: "LIFECYCLE",
    durable: "test",
    batch: 100,
    ackWaitMillis: 30_000,
    maxAckPending: 1_000,
    handler: (batch) =>
      Effect.sync(() => {
        for (const message of batch) {
          message.ack()
          if (message.subject.startsWith(`lifecycle.v1.${project}.`)) Queue.offerUnsafe(heard, message)
        }
      }),
  })
  yield* relay.leasePartitions
  const epoch = yield* bus.epoch
  while (yield* relay.publishOrdered(epoch));
  return yield* Queue.takeN(heard, n)
})

layer(transmitter, { excludeTestServices: true })("Messages", (it) => {
  it.effect("are tokens of the active key, one event each, with the same bytes on the bus and by cursor", () =>
    Effect.gen(function* () {
      const { asking, institution, project } = yield* scene
      const pat = yield* person()
      yield* access(institution, project, pat)
      yield* signAll
      const { head, items } = yield* everything(asking)
      assert.deepStrictEqual(items.map(({ position }) => position), Array.from({ length: head }, (_, i) => i + 1))
      assert.isAbove(head, 3)

      const { keys } = yield* (yield* SigningKeys).jwks
      assert.lengthOf(keys, 1)
      const kid = yield* Effect.promise(() => calculateJwkThumbprint(keys[0]!))
      const keySet = createLocalJWKSet({ keys: [...keys] })
      for (const { jti, set } of items) {
        assert.deepStrictEqual(decodeProtectedHeader(set), { alg: "RS256", typ: "secevent+jwt", kid })
        const { payload } = yield* Effect.promise(() =>
          jwtVerify(set, keySet, {
            issuer: "https://id.example/lifecycle",
            audience: `urn:bailiwick:project:${project}`,
            typ: "secevent+jwt",
            algorithms: ["RS256"],
            requiredClaims: ["iat", "jti", "txn", "sub_id"],
          })
        )
        assert.strictEqual(payload.jti, jti)
        assert.isUndefined(payload.sub)
        assert.isUndefined(payload.exp)
        assert.lengthOf(Object.keys(payload["events"] as object), 1)
      }

      // A consumer can verify the chain from the messages alone.
      const pins = yield* pinsFor(project)
      const events = yield* Effect.forEach(items, ({ set }) => Effect.promise(() => verifyEvent(set, pins)))
      assert.deepStrictEqual(
        events.map(({ prevDigest }) => prevDigest),
        [genesis, ...events.slice(0, -1).map(({ digest }) => digest)],
      )

      const heard = yield* onTheBus(project, items.length)
      assert.deepStrictEqual(heard.map(({ text }) => text), items.map(({ set }) => set))
      assert.match(heard.at(-1)!.subject, /\.access-granted$/)
    }))

  it.effect("are signed once under concurrent signers, and again where a killed signer stored nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { signDue } = yield* EventSigner
      const { asking, institution, project } = yield* scene
      const messages = sql<{ n: number }>`
        select count(*)::int as n from lifecycle_messages where project_id = ${project}`
      const died = (point: string) =>
        Effect.exit(Effect.provideService(signDue, Failpoints, {
          hit: (here) => {
            if (here === point) throw new Error("killed")
          },
        }))
      assert.strictEqual((yield* died("lifecycle.signed"))._tag, "Failure")
      assert.deepStrictEqual(yield* messages, [{ n: 0 }])
      assert.strictEqual((yield* everything(asking)).head, 0)

      assert.strictEqual((yield* died("lifecycle.stored"))._tag, "Failure")
      const before = yield* everything(asking)
      assert.isAbove(before.head, 3)

      yield* Effect.forEach(
        Array.from({ length: 5 }),
        () => Effect.flatMap(person(), (who) => access(institution, project, who)),
      )
      yield* Effect.all([signDue, signDue, signDue], { concurrency: "unbounded" })
      const { items } = yield* everything(asking)
      assert.deepStrictEqual(items.slice(0, before.head), before.items)
      assert.lengthOf(items, before.head + 5)
      const queued = yield* sql<{ payload: string }>`
        select payload from outbox where aggregate_id = ${project} order by seq`
      assert.deepStrictEqual(queued.map(({ payload }) => payload), items.map(({ set }) => set))
    }))
})
