/** The yardstick: a loop that signs and POSTs from memory, 64 in flight, and writes nothing anywhere. */
import "../../src/process/HideAsyncHooks.ts"
import { eventOf, type Hook } from "../harness/Fixture.ts"
import { inFlight, listeners, post } from "./post.ts"
import { say, variable } from "./speak.ts"

const hooks: ReadonlyArray<Hook> = JSON.parse(variable("HOOKS"))
const jobOf = listeners(hooks)
const jobs = Array.from({ length: Number(variable("EVENTS")) }, (_, n) => jobOf(eventOf(hooks, n)))

let next = 0
const lane = async () => {
  while (next < jobs.length) await post(jobs[next++]!)
}
await Promise.all(Array.from({ length: inFlight }, lane))
say("settled", {})
process.stdin.resume()
