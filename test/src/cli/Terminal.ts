/** Runs the command line as a process of its own, against this file's database and broker. */
import { Effect, Redacted } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Processes from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Each command is a process: where several test files share two cores, its start alone takes seconds. */
export const slow = 120_000

export interface Typed {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** The variables of this file's servers. */
export const servers = Effect.gen(function* () {
  const database = yield* TestDatabase
  return {
    DATABASE_URL: Redacted.value(database.url),
    DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
    NATS_URL: Redacted.value((yield* TestBus).url),
  }
})

let files = 0

/** Writes a file into the home and returns its path. */
export const written = (home: string, text: string | Uint8Array) =>
  Effect.sync(() => {
    const path = join(home, `file-${files++}`)
    writeFileSync(path, text)
    return path
  })

/** Runs one command to its end; `stdin` is a file's path. */
export const type = (
  home: string,
  env: Record<string, string>,
  args: ReadonlyArray<string>,
  stdin = "/dev/null",
) =>
  Effect.gen(function* () {
    const stderr = yield* written(home, "")
    const program = yield* Processes.start({
      module: "src/cli/main.ts",
      args,
      env: { ...env, BAILIWICK_HOME: home, CLI_STDERR: stderr, CLI_STDIN: stdin },
      command: ["/bin/sh", "-c", `exec "$@" <"$CLI_STDIN" 2>"$CLI_STDERR"`, "sh", ...Processes.runtime()],
    })
    const code = yield* program.exited
    return { code, stdout: program.output(), stderr: readFileSync(stderr, "utf8") } satisfies Typed
  }).pipe(Effect.scoped)

/** Runs one command to its end, whose standard output is closed from the beginning. */
export const unread = (home: string, env: Record<string, string>, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const stderr = yield* written(home, "")
    const begun = `mkfifo "$CLI_PIPE"; : <"$CLI_PIPE" & exec 4>"$CLI_PIPE"; wait $!; exec "$@" >&4 2>"$CLI_STDERR"`
    const program = yield* Processes.start({
      module: "src/cli/main.ts",
      args,
      env: { ...env, BAILIWICK_HOME: home, CLI_STDERR: stderr, CLI_PIPE: `${stderr}-pipe` },
      command: ["/bin/sh", "-c", begun, "sh", ...Processes.runtime()],
    })
    return { code: yield* program.exited, stderr: readFileSync(stderr, "utf8") }
  }).pipe(Effect.scoped)

export const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")
