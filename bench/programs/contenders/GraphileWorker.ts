/** The same job on graphile-worker, tuned: 64 at once from a local queue of 500, completions written in batches. */
import "../../../src/process/HideAsyncHooks.ts"
import { Logger, makeWorkerUtils, run } from "graphile-worker"
import { takeIn } from "./PeerIntake.ts"
import { inFlight, type Job, post } from "./UndiciPost.ts"
import { say, variable } from "../ChildProtocol.ts"

const events = Number(variable("EVENTS"))
const connectionString = variable("DATABASE_URL")
const logger = new Logger(() => (level, message) => level === "error" ? console.error(message) : undefined)
const preset = {
  worker: {
    connectionString,
    maxPoolSize: 12,
    concurrentJobs: inFlight,
    localQueue: { size: 500 },
    completeJobBatchDelay: 5,
    failJobBatchDelay: 5,
  },
}
const utils = await makeWorkerUtils({ connectionString, logger })
await utils.migrate()
const runner = await run({ preset, logger, noHandleSignals: true, taskList: { deliver: (job) => post(job as Job) } })
let settled = 0
const all = new Promise<void>((resolve) => {
  runner.events.on("job:complete", () => ++settled === events ? resolve() : undefined)
})
await takeIn(events, (jobs) => utils.addJobs(jobs.map((payload) => ({ identifier: "deliver", payload }))))
await all
say("settled", {})
process.stdin.resume()
