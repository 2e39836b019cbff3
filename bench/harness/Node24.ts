/** Node 24 itself, for peers that run on it: so that it is our child and not npx's. */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { BenchError } from "./Child.ts"

/** The command that runs a module. */
export const node24 = Effect.tryPromise({
  try: () =>
    promisify(execFile)("npx", ["-y", "-p", "node@24", "node", "-p", "process.execPath"], { timeout: 120_000 }),
  catch: (cause) => new BenchError({ message: `Node 24 from npm: ${String(cause)}` }),
}).pipe(Effect.map(({ stdout }) => [stdout.trim()]))
