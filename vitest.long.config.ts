import { defineConfig } from "vitest/config"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/** The long histories and the runs in which something is killed: minutes, not part of `task test`. */
export default defineConfig({
  test: {
    include: ["test/long/**/*.test.ts"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // One file at a time: what is killed at a moment must not starve before it.
    maxWorkers: 1,
    maxConcurrency: 4,
    globalSetup: ["test/support/GlobalSetup.ts"],
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts"],
    // The broker's library gives up a socket together with its listeners: what the broker's end does to it afterwards
    // belongs to no test (src/process/LateWrite.ts is the program's own guard against it).
    onUnhandledError: (error) => !("code" in error && abandoned.has(String(error.code))),
    testTimeout: 900_000,
    hookTimeout: 120_000,
  },
})
