import { defineConfig } from "vitest/config"
import { generated, leftToLong } from "./test/support/TestFiles.ts"

const abandoned = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_WRITE_AFTER_END"])

/**
 * Tests of rates and of what is done within a time, which beside others would measure these as well; and those that run four
 * kills at once.
 */
const alone = ["Fairness", "Killed", "KilledTransfers", "StoppedInTime"].map((name) => `test/long/${name}.test.ts`)

/**
 * What `task test` leaves out. First the tests of whole programs, of browsers and of every order of commands, and the files
 * that try a share of their generated cases there, two files at once (with three 10,000 events missed their three minutes
 * beside other work); then long histories and killed processes, which wait for leases, servers and kills, three at once;
 * then those of `alone`, one by one.
 */
export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "whole",
          include: [...leftToLong()],
          env: { GENERATED_CASES: "all" },
          maxWorkers: 2,
          provide: { inMemory: true },
          testTimeout: 300_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "generated",
          include: [...generated()],
          env: { GENERATED_CASES: "all" },
          maxWorkers: 2,
          isolate: false,
          provide: { inMemory: true },
          testTimeout: 300_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "long",
          include: ["test/long/**/*.test.ts"],
          exclude: alone,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      { extends: true, test: { name: "alone", include: alone, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
    // Worker threads do not run on Deno.
    pool: "forks",
    // As in vitest.config.ts: a worker runs many files, whose modules the runtime loads itself, from its own cache. Three files in
    // fresh workers, and by Vite's modules, took 139 s of processor time in place of 120.
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ["--min-semi-space-size=32", "--max-semi-space-size=64"],
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
