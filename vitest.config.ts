import process from "node:process"
import { defineConfig } from "vitest/config"
import { leftToLong } from "./test/support/TestFiles.ts"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/** A file or folder that the command line names is run wherever it belongs. */
const named = process.argv.some((argument) => argument.startsWith("test/"))

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**", "**/node_modules/**", ...named ? [] : leftToLong()],
    // Worker threads do not run on Deno.
    pool: "forks",
    // Files wait for real time and for servers during a part of their time: five keep two cores busy.
    maxWorkers: 5,
    // A worker runs many files: loading Effect for each of 317 took a quarter of the suite's processor time. State of a
    // module outlives a test file, so no test may expect a counter to begin at zero.
    isolate: false,
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
