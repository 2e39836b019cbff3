/** Checks the rotation of the keys that sign lifecycle messages. It changes none. */
import { Clock, Effect } from "effect"
import { standings } from "../../services/lifecycle/Keys/KeyStatus.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"
import { type Finding, ok, warn } from "./Finding.ts"

const what = "signing keys"
const announcing = `type "${cliCommand("keys announce")}"`
const year = 365 * 86_400_000

export const signingKeyChecks = Effect.gen(function* () {
  const { keys, transition } = yield* yield* standings
  const active = keys.find(({ state }) => state === "active")
  if (active === undefined) return [ok(what, "none yet", "the first message makes them")]
  const now = yield* Clock.currentTimeMillis
  const found: Array<Finding> = []
  const days = Math.floor((now - active.since.getTime()) / 86_400_000)
  if (now - active.since.getTime() > year && transition === null) {
    found.push(warn(what, `${active.kid} has signed for ${days} days`, announcing))
  }
  const coming = keys.filter(({ state }) => state === "announced" || state === "published").length
  if (coming < 2) {
    found.push(warn(what, `${coming} announced, consumers should know the next two`, announcing))
  }
  if (transition !== null && transition.deadlineAt.getTime() < now) {
    found.push(warn(
      what,
      `${transition.left} projects have not switched to ${transition.successor} by the deadline`,
      "does a process with the role lifecycle run?",
    ))
  }
  return found.length > 0 ? found : [ok(what, `active for ${days} days, ${coming} announced`)]
})
