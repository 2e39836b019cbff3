/**
 * Growth: each hot statement through the program's own service with ten thousand rows, a million, and ten million,
 * measured in the blocks that PostgreSQL reads for it, which no load on the machine changes. Fails where a call reads
 * more than one and a half times the blocks of the size before; a higher tree may cost one block more a descent.
 *
 * `--quick` leaves out the ten million, and the claim's name is `growth`; an area alone by `--only=outbox;audit`.
 */
import { Cause, Effect } from "effect"
import { migrate } from "../../src/Migrations.ts"
import * as Child from "../harness/Child.ts"
import type { Claim, Run } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"
import * as Product from "../harness/Product.ts"
import { audit } from "./Growth/AuditGrowth.ts"
import type { Area, Statement } from "./Growth/Area.ts"
import { deliveries } from "./Growth/DeliveryGrowth.ts"
import { withLateIndexes } from "./Growth/LateIndexes.ts"
import { evidence } from "./Growth/EvidenceGrowth.ts"
import { lifecycle } from "./Growth/LifecycleGrowth.ts"
import { notifications } from "./Growth/NotificationGrowth.ts"
import { outbox } from "./Growth/OutboxGrowth.ts"
import { people } from "./Growth/PeopleGrowth.ts"

const areas: ReadonlyArray<Area> = [outbox, audit, notifications, deliveries, lifecycle, people, evidence]

const most = 1.5
/** Enough calls for PostgreSQL to have chosen between custom plans and a generic one. */
const warm = 10
const counted = 10

interface Figures {
  readonly name: string
  readonly descents: number
  /** Per call. */
  readonly blocks: number
  readonly millis: number
}

const failed = (what: string) => (cause: unknown) =>
  cause instanceof Child.BenchError
    ? cause
    : new Child.BenchError({ message: `growth: ${what}: ${Cause.pretty(Cause.fail(cause))}` })

/** The blocks of a statement: each call is counted by itself, so that `prepare` does not count. */
const figuresOf = (blocks: Effect.Effect<number, Child.BenchError>) =>
  Effect.fnUntraced(function* ({ descents, name, prepare = Effect.void, run }: Statement) {
    const found: Array<{ readonly blocks: number; readonly millis: number }> = []
    for (let n = 0; n < warm + counted; n++) {
      yield* prepare
      const before = yield* blocks
      const from = performance.now()
      yield* run(n)
      const millis = performance.now() - from
      if (n >= warm) found.push({ blocks: (yield* blocks) - before, millis })
    }
    const of = (key: "blocks" | "millis") => median(found.map((one) => one[key]))
    return { name, descents, blocks: of("blocks"), millis: of("millis") } satisfies Figures
  })

const measured = (run: Run, area: Area, rows: number) =>
  Effect.gen(function* () {
    const fixture = yield* run.servers.fixture()
    yield* run.tell(`${area.name}: writing ${rows} rows`)
    // Ten million rows are written by a few statements, which may take many minutes.
    yield* Effect.andThen(migrate, withLateIndexes(area.fill(rows, run))).pipe(
      Effect.provide(Product.databaseOf(fixture, 240)),
    )
    yield* fixture.count
    return yield* Effect.gen(function* () {
      const statements = yield* area.statements(fixture, run, rows)
      return yield* Effect.forEach(statements, (statement) =>
        Effect.andThen(
          run.tell(`${area.name}, ${rows}: ${statement.name}`),
          Effect.mapError(figuresOf(fixture.blocks)(statement), failed(`${statement.name}, ${rows} rows`)),
        ))
    }).pipe(Effect.provide(Product.databaseOf(fixture)))
  }).pipe(Effect.scoped, Effect.mapError(failed(`${area.name}, ${rows} rows`)))

const isFlat = (before: Figures, after: Figures) =>
  after.blocks <= before.blocks * most || after.blocks - before.blocks <= before.descents

export const growth = (only?: ReadonlyArray<string>): Claim => ({
  name: "growth",
  title: "Flat as it grows: blocks that a call touches",
  measure: (run) =>
    Effect.gen(function* () {
      const sizes = run.quick ? [10_000, 1_000_000] : [10_000, 1_000_000, 10_000_000]
      const wanted = areas.filter(({ name }) => only === undefined || only.includes(name))
      const found = yield* Effect.forEach(wanted, (area) =>
        Effect.map(
          Effect.forEach(sizes, (rows) => measured(run, area, rows)),
          ([first, ...others]) => ({ area, first: first!, others }),
        ))
      const tables = found.map(({ area, first, others }) => ({
        title: `Blocks, and milliseconds, a call: ${area.name}`,
        columns: ["", ...sizes.map((rows) => `${rows} rows`), ...sizes.map((rows) => `ms, ${rows}`), "flat"],
        rows: first.map((before, i) => {
          const all = [before, ...others.map((figures) => figures[i]!)]
          return [
            before.name,
            ...all.map(({ blocks }) => rounded(blocks, 1)),
            ...all.map(({ millis }) => rounded(millis, 1)),
            all.every((after, i) => i === 0 || isFlat(all[i - 1]!, after)) ? "yes" : "NO",
          ]
        }),
      }))
      const grown = tables.flatMap(({ rows }) => rows.filter((row) => row.at(-1) === "NO"))
      if (grown.length > 0) {
        const lines = grown.map((row) => row.join("  ")).join("\n  ")
        return yield* new Child.BenchError({ message: `growth: these grow with what lies beside them:\n  ${lines}` })
      }
      return {
        tables,
        notes: [
          `The median of ${counted} calls after ${warm}; blocks of tables and indexes, found in memory or read.`,
          "Tables were filled, vacuumed and analyzed; people grow with their rows, accounts, webhooks and projects do not.",
        ],
        raw: found.map(({ area, first, others }) => ({ area: area.name, sizes, figures: [first, ...others] })),
      }
    }),
})
