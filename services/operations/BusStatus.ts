/** The broker's streams and their consumers, for operators. */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { streamNames } from "../../schemas/bus/BusStreams.ts"
import type { BusReport } from "../../schemas/identity/StreamReportView.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { Bus } from "../platform/messaging/Bus.ts"
import { mustOperate } from "./OperatorRole.ts"

/** Longer than the manager waits for the consumers of a stream, which a user without that right never gets. */
const deadline = "8 seconds"

export class BusStatus extends Context.Service<BusStatus, {
  /** Every stream of the program; RoleRequired unless the person is an active operator. */
  readonly read: (personId: PersonId) => Effect.Effect<BusReport, RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/operations/BusStatus") {
  static readonly layer = Layer.effect(
    BusStatus,
    Effect.gen(function* () {
      const bus = yield* Bus
      const operating = yield* mustOperate

      const read = Effect.fn("BusStatus.read")(function* (personId: PersonId) {
        yield* operating(personId)
        const items = yield* Effect.forEach(streamNames, bus.report, { concurrency: "unbounded" }).pipe(
          Effect.timeout(deadline),
          Effect.catch(() => Effect.succeed(null)),
        )
        return { as_of: new Date(yield* Clock.currentTimeMillis).toISOString(), items } satisfies BusReport
      })

      return BusStatus.of({ read })
    }),
  )
}
