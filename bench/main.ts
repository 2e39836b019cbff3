/**
 * The measured claims: `deno task bench [--quick] [--profile] [--rounds=N] [--rows=N] [--only=contender;…] [claim …]`;
 * `--help` says how long some of them take. The soak takes 40 minutes and runs only by its name. Loopback only, on servers of its own, bounded in count and time; progress on a
 * terminal, a table at the end, JSON and a page under bench/results.
 */
import "../src/process/HideAsyncHooks.ts"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import process from "node:process"
import * as Progress from "../src/cli/Progress.ts"
import { backup } from "./claims/BesideBackup.ts"
import { decisionLog } from "./claims/DecisionCost.ts"
import { growth } from "./claims/Growth.ts"
import { identity } from "./claims/Identity.ts"
import { latency } from "./claims/Latency.ts"
import { lifecycle } from "./claims/Lifecycle.ts"
import { lists } from "./claims/Lists.ts"
import { memory } from "./claims/Memory.ts"
import { migrating } from "./claims/Migrating.ts"
import { reads } from "./claims/Reads.ts"
import { refusals } from "./claims/Refusals.ts"
import { scale } from "./claims/Scale.ts"
import { senders } from "./claims/Senders.ts"
import { slots } from "./claims/Slots.ts"
import { soaking } from "./claims/Soak.ts"
import { start } from "./claims/Start.ts"
import { streams } from "./claims/LiveStreams.ts"
import { throughput } from "./claims/Throughput.ts"
import { transitions } from "./claims/Transitions.ts"
import { upkeep } from "./claims/Upkeep.ts"
import { webConsole } from "./claims/WebConsole.ts"
import { BenchError } from "./harness/Child.ts"
import type { Claim } from "./harness/Claim.ts"
import { conditions, type Reported, save, terminal } from "./harness/Report.ts"
import * as Servers from "./harness/Servers.ts"

const args = process.argv.slice(2)
const quick = args.includes("--quick")
const profile = args.includes("--profile")
const only = args.find((arg) => arg.startsWith("--only="))?.slice("--only=".length).split(";")
const all: ReadonlyArray<Claim> = [
  throughput(only),
  latency,
  reads,
  lists,
  refusals,
  memory,
  migrating,
  scale(only),
  senders,
  slots,
  soaking,
  start,
  streams,
  transitions(only),
  upkeep,
  lifecycle(only),
  identity(only),
  decisionLog,
  webConsole,
  growth(only),
  backup,
]
const named = args.filter((arg) => !arg.startsWith("--"))
const rounds = Number(args.find((arg) => arg.startsWith("--rounds="))?.slice("--rounds=".length) ?? (quick ? 1 : 5))

const asked = args.find((arg) => arg.startsWith("--rows="))?.slice("--rows=".length)
const rows = asked === undefined ? null : Number(asked)

const usage = () =>
  [
    "usage: bench [--quick] [--profile] [--rounds=1…20] [--rows=N] [--only=contender;…] [claim …]",
    ...all.map(({ name, takes, title }) => `  ${name.padEnd(13)} ${title}${takes === undefined ? "" : `: ${takes}`}`),
  ].join("\n")

const measure = Effect.fnUntraced(function* (claim: Claim) {
  const progress = yield* Progress.make
  const servers = yield* Servers.start
  // A scope of its own: a pool whose scope is closing opens no connection any more, not even to drop a database.
  const finding = yield* Effect.scoped(claim.measure({
    servers,
    rounds,
    quick,
    rows,
    profile,
    tell: (text) => progress.tell(`${claim.name}: ${text}`),
  }))
  yield* progress.clear
  return {
    title: claim.title,
    conditions: conditions(servers.versions, claim.once ? 1 : rounds),
    ...finding,
  } satisfies Reported
}, Effect.scoped)

const bench = Effect.gen(function* () {
  if (args.includes("--help")) return yield* Effect.sync(() => console.log(usage()))
  const unknown = named.filter((name) => !all.some((claim) => claim.name === name))
  const isWrong = unknown.length > 0 || !(rounds >= 1 && rounds <= 20) || rows !== null && !(rows >= 1_000)
  if (isWrong) return yield* new BenchError({ message: usage() })
  for (const claim of all.filter((claim) => named.length === 0 ? claim !== soaking : named.includes(claim.name))) {
    const found = yield* measure(claim)
    yield* Effect.sync(() => console.log(`\n${terminal(found)}`))
    const partial = quick || profile || only !== undefined
    const file = yield* Effect.sync(() => save({ [claim.name]: found }, partial))
    yield* Effect.sync(() => console.log(`\n  written to ${file}`))
  }
})

NodeRuntime.runMain(bench.pipe(
  Effect.catch((error) =>
    Effect.sync(() => {
      console.error(error instanceof BenchError ? error.message : error)
      process.exitCode = 1
    })
  ),
))
