/** The loop of both yardsticks: POSTs deliveries from memory, 64 in flight. */
import "../../../src/process/HideAsyncHooks.ts"
import process from "node:process"
import { eventOf, type Hook } from "../../harness/Fixture.ts"
import { inFlight, type Job, listeners } from "./UndiciPost.ts"
import { say, variable } from "../ChildProtocol.ts"

export const loop = async (post: (job: Job) => Promise<void>): Promise<void> => {
  const hooks: ReadonlyArray<Hook> = JSON.parse(variable("HOOKS"))
  const jobOf = listeners(hooks)
  const jobs = Array.from({ length: Number(variable("EVENTS")) }, (_, n) => jobOf(eventOf(hooks, n)))
  let next = 0
  const worker = async () => {
    while (next < jobs.length) await post(jobs[next++]!)
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  say("settled", {})
  process.stdin.resume()
}
