/** The pure rules of assertions, against models that remember everything. */
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Schema } from "effect"
import { Secret, TOTP } from "otpauth"
import {
  afterFailure,
  freeFailures,
  isNewCount,
  isNewStep,
  lockedSeconds,
  type Lockout,
  unlocked,
} from "../../../services/people/Assertions/Judgement.ts"
import { mayAsk, relyingPartyAt } from "../../../services/people/Authenticators/Webauthn.ts"
import { newSecret, stepOf } from "../../../services/people/Authenticators/Totp.ts"

const intUpTo = (max: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(0), Schema.isLessThanOrEqualTo(max))

/** A lock-out by hand: every failure of the run, each with its time. */
const modelled = (failures: ReadonlyArray<number>) => {
  const over = failures.length - freeFailures
  return over <= 0 ? null : failures.at(-1)! + Math.min(3_600_000, 60_000 * 2 ** (over - 1))
}

describe("assertion rules", () => {
  it.prop("a step counts once, and none before one that counted", [Schema.Array(intUpTo(40))], ([shown]) => {
    const counted: Array<number> = []
    let last: number | null = null
    for (const step of shown) {
      const expected = counted.every((before) => step > before)
      assert.strictEqual(isNewStep(step, last), expected)
      if (!expected) continue
      counted.push(step)
      last = step
    }
    assert.strictEqual(new Set(counted).size, counted.length)
  })

  it.prop(
    "a code of the step before, of the present one and of the next is accepted, as that step's, and no other",
    [intUpTo(4_000_000_000), intUpTo(10)],
    ([seconds, off]) => {
      const secret = newSecret()
      const at = seconds * 1_000
      const step = Math.floor(seconds / 30) + off - 5
      const totp = new TOTP({ secret: Secret.fromBase32(Redacted.value(secret)) })
      const codeOf = (of: number) => totp.generate({ timestamp: of * 30_000 })
      if (step < 1) return
      const near = [-1, 0, 1].map((d) => Math.floor(seconds / 30) + d).filter((s) => codeOf(s) === codeOf(step))
      const found = stepOf(secret, codeOf(step), at)
      assert.isTrue(near.length === 0 ? found === null : near.includes(found!), `${found} of ${near}`)
    },
  )

  it.prop("a counter that counts only rises", [Schema.Array(intUpTo(6)), intUpTo(6)], ([shown, first]) => {
    let last = first
    const seen = [first]
    for (const counter of shown) {
      const never = !seen.some((n) => n > 0) && counter === 0
      const expected = never || seen.every((before) => counter > before)
      assert.strictEqual(isNewCount(counter, last), expected)
      if (!expected) continue
      seen.push(counter)
      last = counter
    }
  })

  it.prop(
    "five failures in a row lock for a minute, each further one twice as long, up to an hour; a success unlocks",
    [Schema.Array(Schema.Tuple([Schema.Boolean, intUpTo(4_000_000)]))],
    ([moves]) => {
      let [now, state, failures]: [number, Lockout, Array<number>] = [0, unlocked, []]
      for (const [passes, wait] of moves) {
        now += wait
        const until = modelled(failures)
        const locked = until !== null && until > now
        assert.strictEqual(lockedSeconds(state, now) > 0, locked)
        if (locked) {
          assert.isAtLeast(now + lockedSeconds(state, now) * 1_000, until)
          continue
        }
        failures = passes ? [] : [...failures, now]
        state = passes ? unlocked : afterFailure(state, now)
        assert.strictEqual(state.lockedUntil, modelled(failures))
      }
    },
  )

  it("a day of guessing has few guesses", () => {
    let [now, state, guesses]: [number, Lockout, number] = [0, unlocked, 0]
    while (now < 86_400_000) {
      const seconds = lockedSeconds(state, now)
      if (seconds === 0) {
        state = afterFailure(state, now)
        guesses++
      } else now += seconds * 1_000
    }
    assert.isAtMost(guesses, 35)
  })

  it("pages of the domain and below it may ask, by https", () => {
    const party = relyingPartyAt(new URL("https://portal.example"))
    for (const origin of ["https://portal.example", "https://id.portal.example", "https://id.portal.example:8443"]) {
      assert.isTrue(mayAsk(party, origin), origin)
    }
    const not = [
      "http://portal.example",
      "https://portal.example/",
      "https://notportal.example",
      "https://example",
      "x",
    ]
    for (const origin of not) assert.isFalse(mayAsk(party, origin), origin)
    assert.isTrue(mayAsk(relyingPartyAt(new URL("http://localhost:3000")), "http://localhost:5173"))
  })
})
