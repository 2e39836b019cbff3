import { defineConfig } from "vitest/config"
import { withoutServers } from "./test/support/TestFiles.ts"

/** The tests that need no server, with few generated cases: seconds, for changes of pure functions. Also part of `task test`. */
export default defineConfig({
  test: {
    include: [...withoutServers()],
    // Worker threads do not run on Deno.
    pool: "forks",
    maxWorkers: 2,
    // A worker for all files instead of one each: a quarter of the time was imports.
    isolate: false,
    // Before Effect loads, as in every entry of the program.
    setupFiles: ["src/process/HideAsyncHooks.ts", "test/support/Runs.ts"],
    env: { GENERATED_CASES: "tenth" },
    testTimeout: 60_000,
  },
})
