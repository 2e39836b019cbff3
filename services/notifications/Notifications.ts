/**
 * What an account is told. A notice is an outbox message of the stream NOTIFICATIONS, added in the transaction that
 * decided what it tells of; titles and bodies hold no secrets, addresses or texts that people wrote.
 */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Ids } from "../platform/Ids.ts"
import { Outbox } from "../platform/Outbox.ts"

export interface Notice {
  readonly accountId: string
  readonly category: "alerts" | "sends" | "team" | "domains"
  readonly severity: "info" | "success" | "warning" | "critical"
  readonly title: string
  readonly body: string
  /** A path of the app, beginning with one slash. */
  readonly href: string
}

export class Notifications extends Context.Service<Notifications, {
  /** Adds notices in the current transaction. */
  readonly announce: (...notices: ReadonlyArray<Notice>) => Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/notifications/Notifications") {
  static readonly layer = Layer.effect(
    Notifications,
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const announce = Effect.fnUntraced(function* (...notices: ReadonlyArray<Notice>) {
        const ids = yield* (yield* Ids).batch(notices.length)
        yield* outbox.add(...notices.map(({ accountId, ...notice }, i) => ({
          stream: "NOTIFICATIONS" as const,
          subject: `notifications.v1.${Subject.token(accountId)}.${notice.category}`,
          payload: JSON.stringify({ id: ids[i], account_id: accountId, ...notice }),
        })))
      })
      return Notifications.of({ announce })
    }),
  )
}
