import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { check, satisfies } from "../../../services/people/StepUp.ts"

const signedIn = 1_800_000_000
const at = (seconds: number) => (signedIn + seconds) * 1_000
const by = (aal: "aal1" | "aal2" | "aal3" | "unknown", authTime: number | null = signedIn) => ({ aal, authTime })

it("a sign-in is fresh for exactly the seconds asked for, and without `auth_time` never", () => {
  const demand = { maxAgeSeconds: 300, aal: null }
  for (const [seconds, fresh] of [[-60, true], [0, true], [300, true], [300.999, true], [301, false]] as const) {
    assert.strictEqual(satisfies(by("unknown"), demand, at(seconds)), fresh, String(seconds))
  }
  assert.isFalse(satisfies(by("aal3", null), demand, at(0)))
  assert.isTrue(satisfies(by("unknown", null), { maxAgeSeconds: null, aal: null }, at(0)))
})

it("a level satisfies itself and lower ones, and an unknown level none", () => {
  const enough = (aal: "aal1" | "aal2" | "aal3" | "unknown") =>
    (["aal1", "aal2", "aal3"] as const).map((wanted) => satisfies(by(aal), { maxAgeSeconds: null, aal: wanted }, at(0)))
  assert.deepStrictEqual(enough("aal3"), [true, true, true])
  assert.deepStrictEqual(enough("aal2"), [true, true, false])
  assert.deepStrictEqual(enough("aal1"), [true, false, false])
  assert.deepStrictEqual(enough("unknown"), [false, false, false])
})

it.effect("the challenge names what is missing, and asks for no more than required", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(at(301))
    const asked = (demand: Parameters<typeof check>[1]) =>
      Effect.map(Effect.flip(check(by("aal1"), demand)), ({ acr_values, max_age }) => [acr_values, max_age])
    assert.deepStrictEqual(yield* asked({ maxAgeSeconds: 300, aal: null }), [undefined, 300])
    assert.deepStrictEqual(yield* asked({ maxAgeSeconds: null, aal: "aal2" }), ["urn:service:aal2", undefined])
    assert.deepStrictEqual(yield* asked({ maxAgeSeconds: 300, aal: "aal2" }), ["urn:service:aal2", 300])
    yield* TestClock.setTime(at(300))
    yield* check(by("aal1"), { maxAgeSeconds: 300, aal: "aal1" })
  }))
