/**
 * The same job on pg-boss, tuned: jobs inserted in batches, and instead of its polling workers two loops that fetch 400
 * jobs, send them with 64 in flight between them, and complete them in one statement.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { PgBoss } from "pg-boss"
import { takeIn } from "./PeerIntake.ts"
import { inFlight, type Job, post } from "./UndiciPost.ts"
import { say, variable } from "../ChildProtocol.ts"

const events = Number(variable("EVENTS"))
const queue = "deliveries"
const loops = 2

const boss = new PgBoss({ connectionString: variable("DATABASE_URL"), max: 8 })
boss.on("error", (error) => console.error(error))
await boss.start()
await boss.createQueue(queue)

let settled = 0
const work = async () => {
  while (settled < events) {
    const jobs = await boss.fetch<Job>(queue, { batchSize: 400 })
    if (jobs.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      continue
    }
    let next = 0
    const worker = async () => {
      while (next < jobs.length) await post(jobs[next++]!.data)
    }
    await Promise.all(Array.from({ length: inFlight / loops }, worker))
    await boss.complete(queue, jobs.map((job) => job.id))
    settled += jobs.length
  }
}
await Promise.all([
  takeIn(events, (jobs) => boss.insert(queue, jobs.map((job) => ({ data: job })))),
  ...Array.from({ length: loops }, work),
])
say("settled", {})
process.stdin.resume()
