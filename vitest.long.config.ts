import { defineConfig } from "vitest/config"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/** The tests of long histories and of killed processes: they take minutes, and are not part of `task test`. */
export default defineConfig({
  test: {
    include: ["test/long/**/*.test.ts"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // One file at a time: a process that a test kills at a certain moment must not starve before.
    maxWorkers: 1,
    maxConcurrency: 4,
    globalSetup: ["test/support/GlobalSetup.ts"],
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts"],
    // The broker's library removes its listeners from a socket that it abandons: a later error of that socket belongs to
    // no test (src/process/NatsSocketErrors.ts is the program's own guard against it).
    onUnhandledError: (error) => !("code" in error && abandoned.has(String(error.code))),
    testTimeout: 900_000,
    hookTimeout: 120_000,
  },
})
