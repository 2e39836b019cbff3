import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**"],
    // Worker threads do not run on Deno.
    pool: "forks",
    // A machine shared with others may starve a test once; twice is the test's own fault.
    retry: process.env["CI"] === undefined ? 0 : 1,
    maxWorkers: 2,
    globalSetup: ["test/support/globalSetup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
