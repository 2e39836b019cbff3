/**
 * A product that follows is killed with SIGKILL at every step, several times, while events keep coming: its tables
 * always equal the events up to its position, and in the end the transmitter's state.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import pg from "pg"
import { overPg, postgresStore } from "../../sdk/stores/Postgres.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { lives } from "../sdk/Lives.ts"
import { front, pushTo, secret, streamOf } from "../sdk/KitStreams.ts"
import { fixture, scene } from "../sdk/KitFixture.ts"
import { home } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

/** Each failpoint, and its hits: the first is in the snapshot, later ones are among events. */
const points = ["fetched", "verified", "applied", "committed", "acknowledged"]
const hits = [1, 2, 4, 7]

const sqlite = Effect.gen(function* () {
  const file = join(yield* home, "product.db")
  const database = yield* Effect.acquireRelease(
    Effect.sync(() => new DatabaseSync(file)),
    (database) => Effect.sync(() => database.close()),
  )
  // The program writes to it meanwhile.
  database.exec("pragma busy_timeout = 10000")
  return { store: sqliteStore(database), env: { PRODUCT_DB: file } }
})

const postgres = Effect.gen(function* () {
  const url = Redacted.value((yield* TestDatabase.make).ownerUrl)
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new pg.Pool({ connectionString: url, max: 2 })),
    (pool) => Effect.promise(() => pool.end()),
  )
  return { store: postgresStore(overPg(pool)), env: { PRODUCT_URL: url } }
})

layer(fixture, { excludeTestServices: true })("a consumer, killed", (it) => {
  for (const [name, place] of [["SQLite", sqlite], ["PostgreSQL", postgres]] as const) {
    it.effect(
      `at ${points.join(", ")}, with tables in ${name}, a product ends with the transmitter's state`,
      () =>
        Effect.gen(function* () {
          const made = yield* scene
          const { env, store } = yield* place
          yield* Effect.promise(() => store.prepare())
          const { killed, survives } = yield* lives(made, store, env)
          for (const nth of hits) for (const point of points) yield* killed(`${point}:${nth}`)
          yield* survives()
        }),
      { timeout: 1_800_000, concurrent: true },
    )
  }

  it.effect(
    "beside another process of the product on the same database it ends with the transmitter's state",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { env, store } = yield* postgres
        yield* Effect.promise(() => store.prepare())
        const { begin, killed, survives } = yield* lives(made, store, env)
        yield* Effect.scoped(Effect.gen(function* () {
          const other = yield* begin("")
          yield* other.line(/"opened"/)
          for (const nth of hits) {
            for (const point of ["verified", "applied", "committed"]) yield* killed(`${point}:${nth}`)
          }
          assert.deepStrictEqual(other.output().split("\n").filter((line) => /"(closed|retrying)"/.test(line)), [])
        }))
        yield* survives()
      }),
    { timeout: 1_800_000, concurrent: true },
  )

  it.effect("on a stream that it polls it ends with the transmitter's state", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const { streamId } = yield* streamOf(made)
      const { env, store } = yield* sqlite
      yield* Effect.promise(() => store.prepare())
      const { killed, survives } = yield* lives(made, store, env, { env: { STREAM_ID: streamId } })
      for (const nth of hits) for (const point of points) yield* killed(`${point}:${nth}`)
      yield* survives()
    }), { timeout: 1_800_000, concurrent: true })

  it.effect(
    "on a push stream it ends with the transmitter's state, also when killed after its answer",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { arrives, url } = yield* front
        const { streamId } = yield* streamOf(made, pushTo(url))
        const { env, store } = yield* sqlite
        yield* Effect.promise(() => store.prepare())
        const stream = { env: { STREAM_ID: streamId, PUSHED: secret }, arrives }
        const { killed, survives } = yield* lives(made, store, env, stream)
        // Here pushes bring the events; the product polls by itself only once a minute.
        const [fetched, ...others] = points
        yield* killed(`${fetched}:1`)
        for (const nth of hits) for (const point of [...others, "answered"]) yield* killed(`${point}:${nth}`)
        yield* survives()
      }),
    { timeout: 1_800_000, concurrent: true },
  )
})
