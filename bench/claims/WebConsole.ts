/**
 * The cost of the console: the first paint of a list of deliveries in Chromium, beside the answer of the API that it
 * shows; the size of its files; and the speed and the memory of the program with the console and without.
 */
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { WebhookId } from "../../schemas/BrandedIds.ts"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { demoFile, demoIds } from "../../src/embedded/DemoDirectory.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { consoleFiles, sourceHash } from "../../src/http/console/ConsoleBuild.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { consoleVisitor, type Painted } from "../harness/ConsoleVisitor.ts"
import { rssMegabytes } from "../harness/Cpu.ts"
import { median, rounded } from "../harness/Figures.ts"
import { fill, hooksOn } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"
import { apiKeys, deliveries } from "./Reads.ts"

const failed = (cause: unknown) => new Child.BenchError({ message: `console: ${String(cause)}` })

const list = "/v1/webhook-deliveries"
const short = "a list of 1,000, files cached"
const long = "a list of 100,000, files cached"
const fresh = "a list of 100,000, nothing cached"

/** The demo with a webhook of Alice's and so many deliveries, and a browser in which she is signed in. */
const visited = Effect.fnUntraced(function* (run: Run, count: number) {
  const { servers } = run
  const fixture = yield* servers.fixture()
  const port = yield* freePort()
  const url = `http://127.0.0.1:${port}`
  const home = join(servers.home, `console-${port}`)
  const env = { DEMO: "true", BAILIWICK_HOME: home, PORT: String(port), PUBLIC_URL: url }
  const program = yield* Product.start(servers, fixture, env)
  yield* Product.ready(program)
  const demo = /http:\S+/.exec(yield* program.line(/^ +console +http/))![0]
  const { accounts } = JSON.parse(readFileSync(join(home, demoFile), "utf8"))
  const made = yield* Effect.tryPromise(async () => {
    const response = await fetch(`${url}/v1/webhooks/`, {
      method: "POST",
      headers: { authorization: `Bearer ${accounts.alice.api_key}`, "content-type": "application/json" },
      body: JSON.stringify({ url: "http://127.0.0.1:20999/", events: ["email.sent"] }),
    })
    const text = await response.text()
    if (response.status !== 201) throw new Error(text)
    return JSON.parse(text) as { readonly id: WebhookId }
  })
  const hook = { id: made.id, accountId: demoIds.alice, event: "email.sent", url: "", secret: "" }
  yield* Effect.provide(deliveries(hook, count), Product.databaseOf(fixture))
  yield* fixture.sql`vacuum analyze`
  return yield* consoleVisitor(servers.home, demo, "Alice")
})

const painting = (run: Run) =>
  Effect.gen(function* () {
    const [few, many] = yield* Effect.all([visited(run, 1_000), visited(run, 100_000)])
    const looks = {
      [short]: [few, true],
      [long]: [many, true],
      [fresh]: [many, false],
    } as const
    const rounds: Array<Readonly<Record<string, Painted>>> = []
    // The first visit fills the cache and is not counted; the further ones of a round take turns.
    for (let round = 0; round <= run.rounds * 3; round++) {
      yield* run.tell(`page ${round} of ${run.rounds * 3}`)
      const painted: Record<string, Painted> = {}
      for (const [name, [visitor, cached]] of Object.entries(looks)) {
        painted[name] = yield* visitor.open("/console/deliveries", list, cached)
      }
      if (round > 0) rounds.push(painted)
    }
    return rounds
  }).pipe(Effect.scoped, Effect.mapError(failed))

const sizes = Effect.promise(async () => {
  const files = [...await consoleFiles(await sourceHash())]
  const page = new TextDecoder().decode(new Map(files).get("index.html")!.raw)
  const bytes = (of: typeof files) => ({
    gzip: of.reduce((sum, [, { gzip }]) => sum + gzip.length, 0),
    br: of.reduce((sum, [, { br }]) => sum + br.length, 0),
  })
  const first = files.filter(([name]) => name === "index.html" || page.includes(name))
  const others = files.filter((one) => !first.includes(one))
  const largest = others.toSorted(([, a], [, b]) => b.gzip.length - a.gzip.length)[0]!
  return [
    ["the page with what it loads at once", bytes(first)],
    ["the largest further file", bytes([largest])],
    ["everything", bytes(files)],
  ] as const
})

interface Costs {
  readonly rate: number
  readonly p99: number
  readonly idle: number
  readonly after: number
}

const modes = ["off", "on"] as const
type Mode = typeof modes[number]

/** A program with the console on or off: its memory at rest, its rate of reads, and its memory after them. */
const costOf = (run: Run, fixture: Fixture, mode: Mode, path: string, key: string) =>
  Effect.gen(function* () {
    const program = yield* Product.start(run.servers, fixture, { ROLES: "api,actors,timers", CONSOLE: mode })
    const { port } = new URL(yield* Product.ready(program))
    yield* Effect.sleep("10 seconds")
    const idle = rssMegabytes(program.pid) ?? NaN
    const load = yield* Child.start({ module: "bench/programs/load/KeepAliveLoad.ts" })
    const order = { port: Number(port), path, keys: [key], connections: 32, warmSeconds: 1, seconds: run.quick ? 2 : 6 }
    yield* load.tell(JSON.stringify(order))
    const driven = yield* load.event<Pick<Costs, "rate" | "p99"> & { readonly fault: string | null }>("driven")
    if (driven.fault !== null) return yield* new Child.BenchError({ message: `${path}: ${driven.fault}` })
    return { rate: driven.rate, p99: driven.p99, idle, after: rssMegabytes(program.pid) ?? NaN } satisfies Costs
  }).pipe(Effect.scoped)

const comparing = (run: Run) =>
  Effect.gen(function* () {
    const { servers } = run
    const hooks = hooksOn([9])
    const { key } = yield* newKey
    const [hook] = hooks
    const filled = [fill(hooks, Product.keysFileOf(servers)), deliveries(hook!, 100_000), apiKeys(hook!.accountId, key)]
    yield* servers.template("console", Effect.all(filled))
    const fixture = yield* servers.fixture("console")
    yield* fixture.sql`vacuum analyze`
    const rounds: Array<Record<Mode, Costs>> = []
    for (let round = 1; round <= run.rounds; round++) {
      const order = round % 2 === 0 ? modes : modes.toReversed()
      const costs: Partial<Record<Mode, Costs>> = {}
      for (const mode of order) {
        yield* run.tell(`round ${round} of ${run.rounds}: CONSOLE=${mode}`)
        costs[mode] = yield* costOf(run, fixture, mode, `/v1/webhooks/${hook!.id}/deliveries`, key)
      }
      rounds.push(costs as Record<Mode, Costs>)
    }
    return rounds
  }).pipe(Effect.scoped, Effect.mapError(failed))

export const webConsole: Claim = {
  name: "console",
  title: "What the console costs",
  measure: (run) =>
    Effect.gen(function* () {
      const painted = yield* painting(run)
      const files = yield* sizes
      const costs = yield* comparing(run)
      const paint = (name: string, pick: (one: Painted) => number) => median(painted.map((round) => pick(round[name]!)))
      const cost = (mode: Mode, pick: (one: Costs) => number) => median(costs.map((round) => pick(round[mode])))
      const ratio = (pick: (one: Costs) => number) => median(costs.map(({ off, on }) => pick(on) / pick(off)))
      return {
        tables: [
          {
            title: "The list of deliveries in Chromium, ms from the navigation on",
            columns: ["", "first text", "rows", "of it the API's answer", "rows to a list of 1,000", "kB sent"],
            rows: [short, long, fresh].map((name) => [
              name,
              Math.round(paint(name, ({ first }) => first)),
              Math.round(paint(name, ({ rows }) => rows)),
              Math.round(paint(name, ({ answer }) => answer)),
              rounded(median(painted.map((round) => round[name]!.rows / round[short]!.rows)), 2),
              rounded(paint(name, ({ bytes }) => bytes) / 1_000, 1),
            ]),
          },
          {
            title: "The console's files, kB",
            columns: ["", "gzip", "brotli"],
            rows: files.map(([name, { br, gzip }]) => [name, rounded(gzip / 1_000, 1), rounded(br / 1_000, 1)]),
          },
          {
            title: "The API with the console and without: a page of 20 deliveries of 100,000",
            columns: ["", "/s", "p99 ms", "MB at rest", "MB after", "reads to off", "MB at rest to off"],
            rows: modes.map((mode) => [
              `CONSOLE=${mode}`,
              Math.round(cost(mode, ({ rate }) => rate)),
              rounded(cost(mode, ({ p99 }) => p99), 1),
              cost(mode, ({ idle }) => idle),
              cost(mode, ({ after }) => after),
              mode === "off" ? 1 : rounded(ratio(({ rate }) => rate), 2),
              mode === "off" ? 0 : median(costs.map(({ off, on }) => on.idle - off.idle)),
            ]),
          },
        ],
        notes: [
          "Rows: until the frame with the first of them; the browser runs on the same machine, with software rendering.",
          "A program is started anew for each figure of the API; at rest: 10 s after it is ready; ratios within a round.",
        ],
        raw: { painted, costs },
      }
    }),
}
