/**
 * The cost of an idle live stream: resident memory and CPU of one process that holds ten thousand, beside servers that
 * know nothing of accounts, positions and credentials. The clients are a process of their own.
 */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { promisify } from "node:util"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { hashOf } from "../../services/authentication/Principals.ts"
import { Database } from "../../services/platform/database/Database.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { cpuMillis, rssMegabytes } from "../harness/Cpu.ts"
import * as Product from "../harness/Product.ts"

const template = "streams"

/** As many as an account may have. */
const perAccount = 10

/** Node 24 itself, so that it is our child and not npx's. */
const node24 = Effect.tryPromise({
  try: () =>
    promisify(execFile)("npx", ["-y", "-p", "node@24", "node", "-p", "process.execPath"], { timeout: 120_000 }),
  catch: (cause) => new Child.BenchError({ message: `Node 24 from npm: ${String(cause)}` }),
}).pipe(Effect.map(({ stdout }) => [stdout.trim()]))

/** Accounts with a key each, as the directory and the API would have written them. */
const accounts = (keys: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    const ids = keys.map(() => randomUUID())
    const now = new Date()
    const hashes = keys.map((key) => Buffer.from(hashOf(key)).toString("hex"))
    yield* owner`insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
      select id, 1, false, ${now}, id || '@example.com', 'Bench', 'business', false, 'active'
      from unnest(${ids}::uuid[]) id`
    yield* owner`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
      select gen_random_uuid(), id, 'Key', decode(hash, 'hex'), 'benchkey', array['send'], true, ${now}
      from unnest(${ids}::uuid[], ${hashes}::text[]) k(id, hash)`
    yield* owner`analyze`
  })

interface Held {
  /** Kilobytes (10^3) of resident memory a stream. */
  readonly each: number
  readonly idle: number
  readonly all: number
  /** Share of one core while nothing happens but heartbeats and looks. */
  readonly cpu: number
  readonly seconds: number
}

/** Opens the streams and leaves them idle. */
const hold = Effect.fnUntraced(function* (run: Run, pid: number, port: number, keys: ReadonlyArray<string>) {
  const path = "/v1/notifications/stream"
  const clients = yield* Child.start({ module: "bench/programs/load/SseClients.ts" })
  yield* clients.event("ready")
  const idle = rssMegabytes(pid) ?? 0
  const began = performance.now()
  yield* clients.tell(JSON.stringify({ port, path, keys }))
  const { fault } = yield* clients.event<{ readonly fault: string | null }>("opened", 300)
  const seconds = (performance.now() - began) / 1000
  if (fault !== null) return yield* new Child.BenchError({ message: `a stream did not open: ${fault}` })
  yield* Effect.sleep(run.quick ? "20 seconds" : "45 seconds")
  const all = rssMegabytes(pid) ?? 0
  const from = cpuMillis(pid) ?? 0
  const watched = run.quick ? 10 : 30
  yield* Effect.sleep(watched * 1000)
  const cpu = ((cpuMillis(pid) ?? 0) - from) / (watched * 1000)
  const lost = yield* Effect.option(clients.event("fault", 0.1))
  if (lost._tag === "Some") return yield* new Child.BenchError({ message: `a stream ended: ${JSON.stringify(lost)}` })
  return { each: (all - idle) * 1000 / keys.length, idle, all, cpu, seconds } satisfies Held
}, Effect.scoped)

interface Contender {
  readonly name: string
  readonly runtime: string
  readonly open: (run: Run, keys: ReadonlyArray<string>) => Effect.Effect<Held, Child.BenchError>
}

const commanded = (command: ReadonlyArray<string> | undefined) => command === undefined ? {} : { command }

const product = (
  runtime: string,
  own: Readonly<Record<string, string>>,
  command?: ReadonlyArray<string>,
): Contender => ({
  name: ["bailiwick", ...Object.entries(own).map(([name, value]) => `${name}=${value}`)].join(", "),
  runtime,
  open: (run, keys) =>
    Effect.gen(function* () {
      const fixture = yield* run.servers.fixture(template)
      const env = Product.environment(run.servers, fixture, { ROLES: "api,actors", ...own })
      const program = yield* Child.start({ module: "src/main.ts", env, ...commanded(command) })
      const { port } = new URL(yield* Product.ready(program))
      return yield* hold(run, program.pid, Number(port), keys)
    }).pipe(Effect.scoped),
})

const bare = (server: "node:http" | "Deno.serve", runtime: string, command?: ReadonlyArray<string>): Contender => ({
  name: `bare ${server}`,
  runtime,
  open: (run, keys) =>
    Effect.gen(function* () {
      const program = yield* Child.start({
        module: "bench/programs/contenders/SseServers.ts",
        env: { SERVER: server },
        ...commanded(command),
      })
      const { port } = yield* program.event<{ readonly port: number }>("ready")
      return yield* hold(run, program.pid, port, keys)
    }).pipe(Effect.scoped),
})

export const streams: Claim = {
  name: "streams",
  title: "Idle live streams",
  measure: (run) =>
    Effect.gen(function* () {
      const count = run.quick ? 2_000 : 10_000
      const owned = yield* Effect.forEach(Array.from({ length: count / perAccount }), () => newKey)
      const keys = owned.flatMap(({ key }) => Array.from({ length: perAccount }, () => key))
      yield* run.servers.template(template, accounts(owned.map(({ key }) => key)))
      const node = yield* node24
      const contenders = [
        product("Deno", {}),
        product("Deno", { NODE_HTTP: "true" }),
        bare("Deno.serve", "Deno"),
        bare("node:http", "Deno"),
        product("Node 24", {}, node),
        bare("node:http", "Node 24", node),
      ]
      const found: Array<Array<Held>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const held: Array<Held> = []
        for (const contender of contenders) {
          yield* run.tell(`round ${round}: ${count} streams of ${contender.name} on ${contender.runtime}`)
          held.push(yield* contender.open(run, keys))
        }
        found.push(held)
      }
      const ofEach = (pick: (held: Held, round: ReadonlyArray<Held>) => number, at: number) =>
        median(found.map((round) => pick(round[at]!, round)))
      const yardstick = (at: number) =>
        contenders.findIndex(({ name, runtime }) => name === "bare node:http" && runtime === contenders[at]!.runtime)
      return {
        tables: [{
          title: `${count} idle streams of one process`,
          columns: [
            "",
            "runtime",
            "MB before",
            "MB with them",
            "KB a stream",
            "to bare node:http",
            "CPU %",
            "open in s",
          ],
          rows: contenders.map(({ name, runtime }, at) => [
            name,
            runtime,
            Math.round(ofEach(({ idle }) => idle, at)),
            Math.round(ofEach(({ all }) => all, at)),
            rounded(ofEach(({ each }) => each, at), 1),
            rounded(ofEach(({ each }, round) => each / round[yardstick(at)]!.each, at), 2),
            rounded(100 * ofEach(({ cpu }) => cpu, at), 1),
            rounded(ofEach(({ seconds }) => seconds, at), 1),
          ]),
        }],
        notes: [
          `${count / perAccount} accounts with ${perAccount} streams each, by API key; memory is resident, ${
            run.quick ? 20 : 45
          } s after the last was opened.`,
          "Idle is not nothing: a heartbeat every 15 s, each credential looked at every 30 s, each inbox every second.",
          "Deno.serve holds some 40 KB for any answer whose body is a stream; node:http does not.",
        ],
        raw: found,
      }
    }),
}
