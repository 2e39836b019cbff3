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
    // The young generation of a worker that runs eighty files: collected in its default size, it took a fifth of all
    // instructions (159 to 126 billion for the tests of access).
    execArgv: ["--min-semi-space-size=32", "--max-semi-space-size=64"],
    // Files wait for real time and for servers during a part of their time: five keep two cores busy.
    maxWorkers: 5,
    // A worker runs many files: loading Effect for each of 317 took a quarter of the suite's processor time. State of a
    // module outlives a test file, so no test may expect a counter to begin at zero.
    isolate: false,
    // The runtime loads the modules itself, from its own cache: no test replaces a module. (Deno 2.9.6 loses the brackets
    // of a tagged template on a bracketed `yield*`: give the tag a name.)
    experimental: { viteModuleRunner: false, nodeLoader: false },
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
