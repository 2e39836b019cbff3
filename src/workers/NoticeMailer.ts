/**
 * Makes the mails of people's notices, one person at a time: a failure puts off that person's notices only. Pauses while
 * this machine's clock is far from the database's, and while the installation is held.
 */
import { Effect, Layer } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { NoticeMails } from "../../services/decisions/NoticeMails.ts"
import type { SignatureCall } from "../../services/requests/SignatureCalls.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { ClockHealth } from "../../services/platform/database/DatabaseClock.ts"
import { readInstallation } from "../../services/platform/database/Installation.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { loop } from "./Loop.ts"

const limit = 100
const sleepMillis = 1_000

export const NoticeMailer = {
  layer: Layer.effectDiscard(Effect.gen(function* () {
    const clocks = yield* ClockHealth
    const database = yield* Database
    const notices = yield* NoticeMails

    const settle = (personId: PersonId) =>
      run(notices.settle(personId), { faults: "notices" }).pipe(
        Effect.provideService(Database, database),
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logWarning("a person's notices were not mailed", cause), notices.putOff(personId))
        ),
      )

    const call = (one: SignatureCall) =>
      Effect.catchCause(
        notices.call(one),
        (cause) => Effect.logWarning("the signers of a review were not found", cause),
      )

    const turn = Effect.gen(function* () {
      if (!(yield* clocks.read).healthy) return false
      if ((yield* readInstallation(database.sql)).state === "held") return false
      const calls = yield* notices.calls(limit)
      yield* Effect.forEach(calls, call, { concurrency: 4, discard: true })
      const people = yield* notices.due(limit)
      yield* Effect.forEach(people, settle, { concurrency: 4, discard: true })
      return calls.length === limit || people.length === limit
    })

    yield* loop("notice mails", { wait: (max) => Effect.sleep(max) }, sleepMillis, turn)
  })),
}
