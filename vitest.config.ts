import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/** Files that start whole programs or look at pages in a browser, and take longest. */
const whole = /\/test\/(e2e|src\/cli|src\/http\/console)\//

/**
 * Runs one such file after every three others: none is left for the end, where it would run alone, and few run at a time.
 * A checkout that has run before takes the longest of each kind first, a fresh one the largest.
 */
class Interleaved extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const long = sorted.filter(({ moduleId }) => whole.test(moduleId))
    const short = sorted.filter((file) => !long.includes(file))
    return [...long, ...short].map((_, n) => (n % 4 === 0 ? long.shift() : undefined) ?? short.shift() ?? long.shift()!)
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**", "**/node_modules/**"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // Files wait for real time, for servers and for programs during half of their time: four keep two cores busy.
    maxWorkers: 4,
    // A worker runs many files: loading Effect for each of 317 took a quarter of the suite's processor time. State of a
    // module outlives a test file, so no test may expect a counter to begin at zero.
    isolate: false,
    sequence: { sequencer: Interleaved },
    provide: { inMemory: true },
    globalSetup: ["test/support/GlobalSetup.ts"],
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts"],
    // The broker's library removes its listeners from a socket that it abandons: a later error of that socket belongs to
    // no test (src/process/NatsSocketErrors.ts is the program's own guard against it).
    onUnhandledError: (error) => !("code" in error && abandoned.has(String(error.code))),
    // Finds tests that hang; other tests may take as long as the machine needs.
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
})
