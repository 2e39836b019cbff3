/**
 * What a backup costs the deliveries beside it: events at a steady rate alone, while `cli backup` is made again and again,
 * and while a snapshot is held all along, as by a backup to a slow disk: no row that left the queue meanwhile is vacuumed.
 * BACKUP_RATE events a second for BACKUP_SECONDS, beside `--rows` deliveries of before. A way that falls behind ends its run
 * once it has taken three times as long, so the claim ends.
 */
import { Effect, type Scope } from "effect"
import { join } from "node:path"
import process from "node:process"
import * as Child from "../harness/Child.ts"
import type { Claim, Finding, Run } from "../harness/Claim.ts"
import { median, quantile, rounded, type Table } from "../harness/Figures.ts"
import { fill, type Hook, hooksOn } from "../harness/Fixture.ts"
import * as Product from "../harness/Product.ts"
import type { Fixture } from "../harness/Servers.ts"
import { sizesOf } from "../harness/Sizes.ts"
import { deliveries } from "./Reads.ts"

const template = "backup"

const failed = (cause: unknown) => new Child.BenchError({ message: `backup: ${String(cause)}` })

interface Beside {
  /** Goes on until interrupted. */
  readonly work: Effect.Effect<never, Child.BenchError, Scope.Scope>
  /** How often it was done. */
  readonly times: () => number
}

const nothing = (): Beside => ({ work: Effect.never, times: () => 0 })

const backups = (run: Run, fixture: Fixture): Beside => {
  let made = 0
  const env = Product.environment(run.servers, fixture)
  const once = Effect.gen(function* () {
    const file = join(run.servers.home, "beside.backup")
    const command = yield* Child.start({ module: "src/cli/main.ts", args: ["backup", file, "--force"], env })
    yield* command.line(/^\d+ rows of \d+ tables/, 600)
    made++
  }).pipe(Effect.scoped)
  return { work: Effect.forever(once), times: () => made }
}

const held = (_: Run, { sql }: Fixture): Beside => ({
  work: sql`set transaction isolation level repeatable read`.pipe(
    Effect.andThen(sql`select count(*) from webhooks`),
    Effect.andThen(Effect.never),
    sql.withTransaction,
    Effect.mapError(failed),
  ),
  times: () => 1,
})

const ways: Readonly<Record<string, (run: Run, fixture: Fixture) => Beside>> = {
  "alone": nothing,
  "beside backups": backups,
  "beside a snapshot that is held": held,
}

interface Figures {
  /** Deliveries a second, from the first publication to the last arrival. */
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly times: number
  /** Rows that left the queue and are not vacuumed, and MB of it with its indexes, at the end. */
  readonly dead: number
  readonly megabytes: number
}

interface Setting extends Run {
  readonly metronome: Child.Child
  readonly hooks: ReadonlyArray<Hook>
  readonly perSecond: number
  readonly seconds: number
}

const once = (setting: Setting, name: string) =>
  Effect.gen(function* () {
    const { hooks, metronome, perSecond, seconds } = setting
    const fixture = yield* setting.servers.fixture(template)
    yield* Product.ready(yield* Product.start(setting.servers, fixture, {}, setting.profile))
    let from = 0
    const play = Effect.fnUntraced(function* (rate: number, count: number) {
      yield* metronome.tell(JSON.stringify({ natsUrl: fixture.natsUrl, hooks, from, count, rate }))
      from += count
      return yield* metronome.event<{ readonly latencies: ReadonlyArray<number>; readonly millis: number }>(
        "played",
        seconds * 3 + 60,
      )
    })
    yield* play(1_000, 2_000)
    const beside = ways[name]!(setting, fixture)
    const { latencies, millis } = yield* Effect.raceFirst(play(perSecond, perSecond * seconds), beside.work)
    const queue = (yield* sizesOf(fixture.sql, ["delivery_queue"])).get("delivery_queue")!
    return {
      rate: perSecond * seconds * 1_000 / millis,
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
      times: beside.times(),
      dead: queue.dead,
      megabytes: queue.table + queue.indexes,
    } satisfies Figures
  }).pipe(Effect.scoped, Effect.mapError(failed))

type Rounds = ReadonlyArray<Readonly<Record<string, Figures>>>

const tableOf = ({ perSecond, seconds }: Setting, rows: number, rounds: Rounds): Table => ({
  title: `${perSecond} events a second for ${seconds} s, beside ${rows} deliveries of before`,
  columns: ["", "/s", "to alone", "p50 ms", "p99 ms", "backups", "dead rows of the queue", "its MB"],
  rows: Object.keys(ways).map((name) => {
    const of = (pick: (one: Figures) => number) => median(rounds.map((round) => pick(round[name]!)))
    return [
      name,
      Math.round(of(({ rate }) => rate)),
      rounded(median(rounds.map((round) => round[name]!.rate / round["alone"]!.rate)), 2),
      rounded(of(({ p50 }) => p50), 1),
      rounded(of(({ p99 }) => p99), 1),
      of(({ times }) => times),
      Math.round(of(({ dead }) => dead)),
      rounded(of(({ megabytes }) => megabytes), 1),
    ]
  }),
})

const asked = (name: string, fallback: number) => Number(process.env[name] ?? fallback)

export const backup: Claim = {
  name: "backup",
  title: "Deliveries beside a backup",
  takes: "22 minutes with five rounds, 9 with --rounds=2, 3 with --quick; --rows=N deliveries of before (1,000,000)",
  measure: (run) =>
    Effect.gen(function* () {
      const rows = run.rows ?? (run.quick ? 200_000 : 1_000_000)
      const metronome = yield* Child.start({ module: "bench/programs/load/SteadyLoad.ts" })
      const { ports } = yield* metronome.event<{ readonly ports: ReadonlyArray<number> }>("ready")
      const hooks = hooksOn(ports)
      const setting = {
        ...run,
        metronome,
        hooks,
        perSecond: asked("BACKUP_RATE", 2_000),
        seconds: asked("BACKUP_SECONDS", run.quick ? 15 : 60),
      }
      yield* run.tell(`writing ${rows} deliveries`)
      yield* run.servers.template(
        template,
        fill(hooks, Product.keysFileOf(run.servers)).pipe(Effect.andThen(deliveries(hooks[0]!, rows))),
      )
      const rounds: Array<Record<string, Figures>> = []
      for (let round = 1; round <= run.rounds; round++) {
        const figures: Record<string, Figures> = {}
        for (const name of Object.keys(ways)) {
          yield* run.tell(`round ${round} of ${run.rounds}: ${name}`)
          figures[name] = yield* once(setting, name)
        }
        rounds.push(figures)
      }
      return {
        tables: [tableOf(setting, rows, rounds)],
        notes: [
          "20 webhooks of 4 accounts, fan-out 1; publisher and receivers are one process on the same machine.",
          "Backups follow each other until the last event has arrived; each reads every row and packs it on the same cores.",
          "A ratio of less than 1 means that deliveries fell behind the publisher; latencies are from publication to arrival.",
          "Dead rows are PostgreSQL's estimate.",
        ],
        raw: rounds,
      } satisfies Finding
    }),
}
