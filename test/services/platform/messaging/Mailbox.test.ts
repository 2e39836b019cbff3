import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber } from "effect"
import { ClusterError, EntityAddress, EntityId, EntityType, ShardId, Snowflake } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Mailbox, send } from "../../../../services/platform/messaging/Mailbox.ts"

class Refused extends Data.TaggedError("Refused")<{ readonly by: string }> {}

const address = EntityAddress.make({
  shardId: ShardId.make("default", 1),
  entityType: EntityType.make("Domain"),
  entityId: EntityId.make("d"),
})
const direct = Effect.succeed("the service")

describe("Mailbox", () => {
  it.effect("an actor's answer is given without asking the service", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* send(Effect.succeed("the actor"), Effect.die("asked")), "the actor")
      const refused = yield* Effect.flip(send(Effect.fail(new Refused({ by: "the actor" })), Effect.die("asked")))
      assert.strictEqual(refused.by, "the actor")
    }))

  it.effect("an actor without an answer is interrupted after two seconds, and the service is asked", () =>
    Effect.gen(function* () {
      let interrupted = false
      const silent = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (interrupted = true)))
      const fiber = yield* Effect.forkChild(send(silent, direct))
      yield* TestClock.adjust(1_999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "the service")
      assert.isTrue(interrupted)
    }))

  it.effect("an actor whose process ends gives no answer; a caller that leaves is not served", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* send(Effect.interrupt, direct), "the service")
      let asked = false
      const fiber = yield* Effect.forkChild(send(Effect.never, Effect.sync(() => void (asked = true))))
      yield* TestClock.adjust(1_000)
      yield* Fiber.interrupt(fiber)
      assert.isFalse(asked)
    }))

  it.effect("the service is asked after any failure of the cluster, and its refusal is the answer", () =>
    Effect.gen(function* () {
      const failures = [
        new ClusterError.MailboxFull({ address }),
        new ClusterError.AlreadyProcessingMessage({ address, envelopeId: Snowflake.Snowflake("1") }),
        new ClusterError.PersistenceError({ cause: "gone" }),
        new ClusterError.EntityNotAssignedToRunner({ address }),
      ]
      for (const failure of failures) {
        assert.strictEqual(yield* send(Effect.fail(failure), direct), "the service", failure._tag)
        const refused = yield* Effect.flip(send(Effect.fail(failure), Effect.fail(new Refused({ by: "the service" }))))
        assert.strictEqual((refused as Refused).by, "the service")
      }
    }))

  it.effect("without actors the service is asked at once", () =>
    Effect.gen(function* () {
      const answer = send(Effect.die("asked"), direct).pipe(Effect.provideService(Mailbox, { timeoutMillis: 0 }))
      assert.strictEqual(yield* answer, "the service")
    }))
})
