import { defineConfig } from "vitest/config"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**"],
    // Worker threads do not run on Deno.
    pool: "forks",
    maxWorkers: 2,
    globalSetup: ["test/support/globalSetup.ts"],
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts"],
    // The broker's library gives up a socket together with its listeners: what the broker's end does to it afterwards
    // belongs to no test (src/LateWrite.ts is the program's own guard against it).
    onUnhandledError: (error) => !("code" in error && abandoned.has(String(error.code))),
    // What hangs is found out; how long the rest takes is for the machine to say.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
