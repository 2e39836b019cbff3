import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/**
 * One file of e2e, which runs whole programs and mostly waits for them, after every three others: none is left for the
 * end, where it would run alone, and few run at a time.
 */
class Interleaved extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const long = sorted.filter(({ moduleId }) => moduleId.includes("/test/e2e/"))
    const short = sorted.filter((file) => !long.includes(file))
    return [...long, ...short].map((_, n) => (n % 4 === 0 ? long.shift() : undefined) ?? short.shift() ?? long.shift()!)
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // Files wait for real time, for servers and for programs during half of their time: four keep two cores busy.
    maxWorkers: 4,
    // A worker runs many files: loading Effect for each of 317 took a quarter of the suite's processor time. What a module
    // keeps outlives its file: tests count nothing from zero that another file may have counted.
    isolate: false,
    sequence: { sequencer: Interleaved },
    globalSetup: ["test/support/GlobalSetup.ts"],
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts"],
    // The broker's library gives up a socket together with its listeners: what the broker's end does to it afterwards
    // belongs to no test (src/process/LateWrite.ts is the program's own guard against it).
    onUnhandledError: (error) => !("code" in error && abandoned.has(String(error.code))),
    // What hangs is found out; how long the rest takes is for the machine to say.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
