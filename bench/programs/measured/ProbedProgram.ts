/**
 * The program with a memory probe, for the soak. SIGUSR2 collects all garbage and reports one line `probe`: the live
 * heap and the resident memory in bytes, and the longest time in milliseconds that the event loop stood still since the
 * last report (without the collection that the report itself asks for). Needs `--expose-gc`.
 */
import "../../../src/process/HideAsyncHooks.ts"
import process from "node:process"
import { setInterval } from "node:timers"
import { say } from "../ChildProtocol.ts"

/** There with --expose-gc. */
const collect = Reflect.get(globalThis, "gc") as (() => void) | undefined

const everyMillis = 20

let last = performance.now()
let longest = 0
setInterval(() => {
  const now = performance.now()
  longest = Math.max(longest, now - last - everyMillis)
  last = now
}, everyMillis).unref()

process.on("SIGUSR2", () => {
  const pause = longest
  const natural = process.memoryUsage.rss()
  collect?.()
  say("probe", { heap: process.memoryUsage().heapUsed, rss: natural, pause })
  longest = 0
  last = performance.now()
})

await import("../../../src/main.ts")
