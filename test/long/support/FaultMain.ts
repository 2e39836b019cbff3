/**
 * The program, which kills itself with SIGKILL at the Nth hit of a failpoint: `FAULT=point:N`. The signal leaves no
 * moment for anything, so database and broker hold what a power cut of this process would leave. `BACKFILLS` is its list
 * of backfills as JSON. SIGUSR2 makes it read another failpoint from the file `fault` of its home, without a restart; it says
 * `armed` then.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { Failpoints } from "../../../services/platform/Failpoints.ts"
import { BackfillList } from "../../../src/BackfillList.ts"
import { program } from "../../../src/Program.ts"
import { refuse } from "../../../src/process/StartupErrors.ts"

let point: string | undefined
let left = 0
const arm = (fault: string) => {
  const [name, nth] = fault.split(":")
  point = name
  left = Number(nth)
}
arm(process.env["FAULT"] ?? "")
process.on("SIGUSR2", () => {
  arm(readFileSync(join(process.env["BAILIWICK_HOME"] ?? "", "fault"), "utf8"))
  console.log(`armed ${point}`)
})

const faults = Failpoints.of({
  hit: (here) => {
    if (here === point && --left === 0) process.kill(process.pid, "SIGKILL")
  },
})

const backfills = JSON.parse(process.env["BACKFILLS"] ?? "[]")

const faulty = program.pipe(
  Effect.provideService(Failpoints, faults),
  Effect.provideService(BackfillList, backfills),
)
NodeRuntime.runMain(refuse(faulty), { disableErrorReporting: true })
