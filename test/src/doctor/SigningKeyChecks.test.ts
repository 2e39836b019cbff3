import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { KeyRotation } from "../../../services/lifecycle/KeyRotation.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { textOf } from "../../../src/doctor/Finding.ts"
import { signingKeyChecks } from "../../../src/doctor/SigningKeyChecks.ts"
import { consumer, rotating, slow, states, work } from "../../services/lifecycle/Keys/KeysFixture.ts"
import { scene } from "../../services/lifecycle/LifecycleFixture.ts"
import { timed } from "../../services/transfers/TransferFixture.ts"
import { day } from "../../support/Fixtures.ts"

const looked = Effect.map(
  signingKeyChecks,
  (findings) => findings.map((finding) => `${finding.level} ${textOf(finding)}`),
)

layer(rotating(), slow)("doctor, signing keys", (it) => {
  it.effect("the doctor names old keys, missing ones, and transitions past their time", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const { announce } = yield* KeyRotation
      assert.deepStrictEqual(yield* looked, ["ok none yet: the first message makes them"])
      const made = yield* scene
      yield* work
      assert.deepStrictEqual(yield* looked, ["ok active for 0 days, 2 announced"])
      yield* TestClock.adjust(365 * day)
      assert.deepStrictEqual(yield* looked, ["ok active for 365 days, 2 announced"])
      yield* TestClock.adjust(1)
      const before = yield* states
      assert.deepStrictEqual(yield* looked, [
        `warn ${before.active[0]} has signed for 365 days: type "npx -y deno@2.9.6 task cli keys announce"`,
      ])

      // No consumer has acknowledged, and no process moves what is due.
      yield* (yield* consumer(made)).acknowledge
      yield* announce(0)
      yield* work
      yield* TestClock.adjust(14 * day)
      assert.deepStrictEqual(yield* looked, ["ok active for 379 days, 3 announced"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* looked, [
        `warn 1 projects have not switched to ${before.announced[0]} by the deadline: ` +
        "does a process with the role lifecycle run?",
      ])
      yield* work
      assert.deepStrictEqual(yield* looked, ["ok active for 0 days, 2 announced"])
      yield* owner`delete from signing_keys where kid = ${(yield* states).announced[1]!}`
      assert.deepStrictEqual(yield* looked, [
        `warn 1 announced, consumers should know the next two: type "npx -y deno@2.9.6 task cli keys announce"`,
      ])
    }).pipe(timed))
})
