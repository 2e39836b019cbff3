/**
 * The checks of `/ready`: the database answers, has every table of this program and admits its version, and the broker
 * takes messages.
 */
import { Context, Effect, Layer } from "effect"
import { Bus } from "../messaging/Bus.ts"
import { Database } from "../database/Database.ts"
import { VersionFence } from "../database/VersionFence.ts"

type Check = "ok" | "fail"

interface Checks {
  readonly database: Check
  readonly schema: Check
  readonly event_bus: Check
}

export type Readable =
  | { readonly status: "ready" | "degraded"; readonly checks: Checks; readonly note?: string }
  | { readonly status: "not_ready"; readonly checks: Checks; readonly note?: string }

export class Readiness extends Context.Service<Readiness, {
  readonly look: Effect.Effect<Readable>
}>()("bailiwick/services/platform/observability/Readiness") {
  /** `tables`: the tables that this program needs. `note`: a line for the operator, whatever the checks say. */
  static readonly layer = <R = never>(
    tables: ReadonlyArray<string>,
    note: Effect.Effect<string | null, never, R> = Effect.succeed(null),
  ) =>
    Layer.effect(
      Readiness,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const bus = yield* Bus
        const fence = yield* VersionFence
        const readNote = Effect.provideContext(note, yield* Effect.context<R>())
        // Asked on the plain pool: on the multiplexed one the probe would queue behind other reads.
        const missing = sql<{ n: number }>`
          select count(*)::int as n from unnest(${[...tables]}::text[]) t(name) where to_regclass(t.name) is null`.pipe(
          Effect.timeout("2 seconds"),
          Effect.match({ onFailure: () => null, onSuccess: ([row]) => row!.n }),
        )
        const look = Effect.gen(function* (): Effect.fn.Return<Readable> {
          const lacking = yield* missing
          const fits = lacking === 0 && (yield* fence.refusal) === null
          const checks: Checks = {
            database: lacking === null ? "fail" : "ok",
            schema: fits ? "ok" : "fail",
            event_bus: yield* bus.status,
          }
          const text = yield* readNote
          const noted = text === null ? {} : { note: text }
          if (!fits) return { status: "not_ready", checks, ...noted }
          return { status: checks.event_bus === "ok" ? "ready" : "degraded", checks, ...noted }
        })
        return Readiness.of({ look })
      }),
    )
}
