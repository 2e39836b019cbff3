/**
 * What an account hears when one of its keys is made or ends: a notification of the category `alerts`. It names the key
 * by its public prefix; its name is the person's own text and stays off the bus.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../schemas/bus/Subject.ts"
import { Ids } from "../platform/Ids.ts"
import { Outbox } from "../platform/Outbox.ts"

export interface KeyNotices {
  /** In the transaction that made the key. */
  readonly created: (accountId: string, keyPrefix: string) => Effect.Effect<void, SqlError.SqlError>
  /** In the transaction that ended the key. */
  readonly revoked: (accountId: string, keyPrefix: string) => Effect.Effect<void, SqlError.SqlError>
}

export const keyNotices = Effect.gen(function* () {
  const outbox = yield* Outbox
  const notice = (title: string, verb: string) =>
    Effect.fnUntraced(function* (accountId: string, keyPrefix: string) {
      yield* outbox.add({
        stream: "NOTIFICATIONS",
        subject: `notifications.v1.${Subject.token(accountId)}.alerts`,
        payload: JSON.stringify({
          id: yield* (yield* Ids).next,
          account_id: accountId,
          category: "alerts",
          severity: "info",
          title,
          body: `The API key mail_k_${keyPrefix}… was ${verb}.`,
          href: "/api-keys",
        }),
      })
    })
  return {
    created: notice("API key created", "created"),
    revoked: notice("API key revoked", "revoked"),
  } satisfies KeyNotices
})
