/**
 * The time of README's first command, from its exec to `/ready` 200, on an empty home and on the same home again;
 * beside it the unavoidable parts: npx and Deno that do nothing, and PostgreSQL and nats-server alone, made and started
 * as the program does.
 */
import { Effect, Schedule } from "effect"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import * as EmbeddedNats from "../../src/embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"

const deno = ["npx", "-y", "deno@2.9.6"] as const
const bare = "npx deno eval 0"
const servers = "PostgreSQL and nats-server alone, empty home"
const cold = "npx deno task start, empty home"
const warm = "npx deno task start, same home"

const failed = (cause: unknown) => new Child.BenchError({ message: `start: ${String(cause)}` })

const since = (from: number) => Effect.sync(() => performance.now() - from)

/** An unused home; deleted when the scope closes. */
const emptyHome = (run: Run) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(run.servers.home, "start-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true })),
  )

const answers = (url: string) =>
  Effect.tryPromise(() => fetch(url, { signal: AbortSignal.timeout(1_000) })).pipe(
    Effect.tap((response) => Effect.promise(() => response.body?.cancel() ?? Promise.resolve())),
    Effect.filterOrFail(({ status }) => status === 200),
    Effect.retry(Schedule.spaced("5 millis")),
  )

/** npx may not pass a signal on, so the process that holds the home is told to end, and waited for. */
const ended = (home: string) =>
  Effect.gen(function* () {
    const file = join(home, "hold.json")
    if (existsSync(file)) process.kill(JSON.parse(readFileSync(file, "utf8")).pid, "SIGTERM")
    yield* Effect.suspend(() => existsSync(file) ? Effect.fail("still there") : Effect.void).pipe(
      Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 1_000 }),
    )
  }).pipe(Effect.ignore)

/** Milliseconds from the exec of the command to `/ready` 200. */
const started = (home: string) =>
  Effect.gen(function* () {
    const port = yield* freePort()
    const program = yield* Child.start({
      module: "start",
      command: [...deno, "task"],
      env: { BAILIWICK_HOME: home, PORT: String(port), LOG_FORMAT: "json" },
    })
    yield* Effect.addFinalizer(() => ended(home))
    yield* Effect.raceFirst(answers(`http://127.0.0.1:${port}/ready`), program.ended)
    return yield* since(program.startedAt)
  }).pipe(Effect.scoped)

const nothing = Effect.gen(function* () {
  const child = yield* Child.start({ module: "0", command: [...deno, "eval"] })
  yield* Effect.ignore(child.ended)
  return yield* since(child.startedAt)
}).pipe(Effect.scoped)

const alone = (run: Run) =>
  Effect.gen(function* () {
    const home = yield* emptyHome(run)
    const from = performance.now()
    yield* Effect.all([EmbeddedPostgres.start({ home }), EmbeddedNats.start({ home })], { concurrency: 2 })
    return yield* since(from)
  }).pipe(Effect.scoped)

const once = (run: Run) =>
  Effect.gen(function* () {
    const home = yield* emptyHome(run)
    return {
      [bare]: yield* nothing,
      [servers]: yield* alone(run),
      [cold]: yield* started(home),
      [warm]: yield* started(home),
    }
  }).pipe(Effect.scoped, Effect.mapError(failed))

export const start: Claim = {
  name: "start",
  title: "What a start takes",
  measure: (run) =>
    Effect.gen(function* () {
      const rounds: Array<Readonly<Record<string, number>>> = []
      for (let round = 1; round <= run.rounds; round++) {
        yield* run.tell(`round ${round} of ${run.rounds}`)
        rounds.push(yield* once(run))
      }
      const of = (name: string) => median(rounds.map((round) => round[name]!))
      return {
        tables: [{
          title: "Milliseconds from the command to /ready",
          columns: ["", "ms", "to npx and the servers alone"],
          rows: [bare, servers, cold, warm].map((name) => [
            name,
            Math.round(of(name)),
            rounded(median(rounds.map((round) => round[name]! / (round[bare]! + round[servers]!))), 2),
          ]),
        }],
        notes: [
          "With packages installed and compiled, the demo, and every role; the servers of other claims run beside, idle.",
        ],
        raw: rounds,
      }
    }),
}
