/**
 * Two authenticated reads beside the same endpoints in Fastify + pg on Node and in Hono + postgres.js on Deno, over the
 * same rows. Each contender's answers are compared before anything is timed.
 */
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { hashOf } from "../../services/authentication/Principals.ts"
import { newKey } from "../../services/accounts/KeySecret.ts"
import { Partitions } from "../../services/webhooks/Partitions.ts"
import * as queries from "../programs/contenders/ReadQueries.ts"
import * as Child from "../harness/Child.ts"
import { cpuMillis } from "../harness/Cpu.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import { fill, type Hook, hooksOn } from "../harness/Fixture.ts"
import { node24 } from "../harness/Node24.ts"
import * as Product from "../harness/Product.ts"
import { sameAnswers } from "../harness/SameAnswers.ts"

const template = "reads"
const connections = 32

interface Driven {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  /** All answers, those of the warming up included. */
  readonly answered: number
  readonly fault: string | null
}

/** The rows: ids over the last 20 hours, in their partitions, as intake would have written them. */
export const deliveries = ({ accountId, id }: Hook, count: number) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    yield* (yield* Partitions).upkeep
    const now = Date.now()
    const step = Math.floor(20 * 3_600_000 / count)
    for (let at = 0; at < count; at += 50_000) {
      yield* owner`
        insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, response_status,
          endpoint_url, response_body, created_at)
        select u, ${id}::uuid, ${accountId}::uuid, u, 'email.sent', 'delivered', 1, 1, 200, 'http://127.0.0.1/', 'ok', t
        from (
          select to_timestamp(ms / 1000.0) as t,
            (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(ms::text), 1, 3) || '8' || substr(md5(ms::text), 4, 15))::uuid as u
          from (select ${now - count * step}::bigint + n * ${step}::bigint as ms
            from generate_series(${at}::bigint, ${at + 49_999}::bigint) n) m
        ) x`
    }
    yield* owner`insert into delivery_counts (webhook_id, day, status, n, folded)
      values (${id}::uuid, current_date, 'delivered', ${count}, true)`
  }).pipe(Effect.provide(Partitions.layer({ deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 })))

export const apiKeys = (accountId: string, key: string) =>
  Effect.gen(function* () {
    const { owner } = yield* Database
    for (let n = 0; n < 20; n++) {
      const secret = n === 0 ? { key, prefix: key.slice(7, 15) } : yield* newKey
      yield* owner`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
        values (gen_random_uuid(), ${accountId}::uuid, ${`Key ${n}`}, ${hashOf(secret.key)}, ${secret.prefix},
          array['send'], true, ${new Date()})`
    }
  })

/** The driver's figures, and microseconds of CPU for each answer. */
interface Figures extends Driven {
  readonly program: number
  readonly postgres: number
}

const answer = (port: number, path: string, key: string) =>
  Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } })
    const body: unknown = await response.json()
    // The program records the last use of a key; the peers do not.
    return Array.isArray(body) ? body.map((row) => ({ ...row, last_used_at: null })) : body
  })

export const reads: Claim = {
  name: "reads",
  title: "Authenticated reads a second",
  measure: (run: Run) =>
    Effect.gen(function* () {
      const { servers } = run
      const rows = run.quick ? 100_000 : 1_000_000
      const hooks = hooksOn([9])
      const [hook] = hooks
      const { key } = yield* newKey
      yield* run.tell(`writing ${rows} deliveries`)
      yield* servers.template(
        template,
        Effect.all([fill(hooks, Product.keysFileOf(servers)), deliveries(hook!, rows), apiKeys(hook!.accountId, key)]),
      )
      const fixture = yield* servers.fixture(template)
      yield* fixture.sql`vacuum analyze`.pipe(Effect.orDie)
      const program = yield* Product.start(servers, fixture, { ROLES: "api,actors,timers" }, run.profile)
      const url = new URL(yield* Product.ready(program))
      const { authentication, keys, page, total } = queries
      const DATABASE_URL = fixture.databaseUrl
      const fastify = yield* Child.start({
        module: "bench/programs/contenders/Fastify.mjs",
        command: yield* node24,
        env: { DATABASE_URL, QUERIES: JSON.stringify({ authentication, keys, page, total }) },
      })
      const hono = yield* Child.start({ module: "bench/programs/contenders/Hono.ts", env: { DATABASE_URL } })
      const onNode = yield* fastify.event<{ readonly port: number; readonly version: string }>("listening")
      const onDeno = yield* hono.event<{ readonly port: number }>("listening")
      const contenders = {
        "bailiwick": { port: Number(url.port), pid: program.pid },
        "Fastify + pg": { port: onNode.port, pid: fastify.pid },
        "Hono + postgres.js": { port: onDeno.port, pid: hono.pid },
      }
      const names = Object.keys(contenders) as ReadonlyArray<keyof typeof contenders>
      const paths = {
        [`GET /v1/webhooks/{id}/deliveries, 20 rows of ${rows}`]: `/v1/webhooks/${hook!.id}/deliveries`,
        "GET /v1/api-keys/, 20 keys": "/v1/api-keys/",
      }
      for (const path of Object.values(paths)) {
        yield* sameAnswers(path, yield* Effect.forEach(names, (name) => answer(contenders[name].port, path, key)))
      }
      const load = yield* Child.start({ module: "bench/programs/load/KeepAliveLoad.ts" })
      const drive = Effect.fnUntraced(
        function* ({ pid, port }: { readonly pid: number; readonly port: number }, path: string) {
          const used = () => ({ program: cpuMillis(pid) ?? NaN, postgres: servers.cpu().postgres })
          const before = used()
          const order = { port, path, keys: [key], connections, warmSeconds: 1, seconds: run.quick ? 2 : 4 }
          yield* load.tell(JSON.stringify(order))
          const driven = yield* load.event<Driven>("driven")
          if (driven.fault !== null) return yield* new Child.BenchError({ message: `${path}: ${driven.fault}` })
          const after = used()
          const each = (of: "program" | "postgres") => (after[of] - before[of]) * 1_000 / driven.answered
          return { ...driven, program: each("program"), postgres: each("postgres") } satisfies Figures
        },
      )
      const rounds: Array<Record<string, Record<string, Figures>>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Record<string, Figures>> = {}
        for (const [title, path] of Object.entries(paths)) {
          figures[title] = {}
          for (const name of names) {
            yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
            figures[title][name] = yield* drive(contenders[name], path)
          }
        }
        rounds.push(figures)
      }
      return {
        tables: Object.keys(paths).map((title) => ({
          title,
          columns: ["", "/s", "p50 ms", "p99 ms", "CPU µs: program", "postgres", "bailiwick to it"],
          rows: names.map((name) => {
            const of = (pick: (d: Figures) => number) => median(rounds.map((round) => pick(round[title]![name]!)))
            const ratio = median(rounds.map((round) => round[title]!["bailiwick"]!.rate / round[title]![name]!.rate))
            return [
              name,
              Math.round(of((d) => d.rate)),
              rounded(of((d) => d.p50), 1),
              rounded(of((d) => d.p99), 1),
              Math.round(of((d) => d.program)),
              Math.round(of((d) => d.postgres)),
              rounded(ratio, 2),
            ]
          }),
        })),
        notes: [
          `${connections} keep-alive connections from a process of their own, ${
            run.quick ? 2 : 4
          } s each after 1 s of warming up.`,
          `Fastify on Node ${onNode.version}, Hono on Deno.serve; pools of 10; the answers are equal, compared before.`,
          "The peers ask for the credential first and the page then; they keep no last_used_at, audit or request id.",
        ],
        raw: rounds,
      }
    }),
}
