import { defineConfig } from "vitest/config"

/** The long histories and the runs in which something is killed: minutes, not part of `task test`. */
export default defineConfig({
  test: {
    include: ["test/long/**/*.test.ts"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // A machine shared with others may starve a test once; twice is the test's own fault.
    retry: process.env["CI"] === undefined ? 0 : 1,
    maxWorkers: 2,
    maxConcurrency: 4,
    globalSetup: ["test/support/globalSetup.ts"],
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
})
