/** Webhooks and dead letters as rows, of the account `uuid(1)`. */
import { Clock, Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import { Ids } from "../../services/platform/Ids.ts"
import { uuid } from "./DirectoryLines.ts"

/** A webhook of this id. */
export const webhook = Effect.fnUntraced(function* (id: string, deleted: boolean) {
  const { sql } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`insert into webhooks ${
    sql.insert({
      id,
      account_id: uuid(1),
      url: "https://hooks.example/x",
      events: ["email.sent"],
      is_active: true,
      version: 1,
      secret_kid: "k",
      secret: new Uint8Array([1]),
      created_at: now,
      updated_at: now,
      deleted_at: deleted ? now : null,
    })
  }`
  yield* sql`insert into webhook_lanes ${sql.insert({ webhook_id: id, account_id: uuid(1) })}`
})

/** A dead letter whose delivery's partition was dropped. */
export const deadLetter = Effect.fnUntraced(
  function* (webhookId: string, url = "https://hooks.example/x", id?: string) {
    const { sql } = yield* Database
    const now = new Date(yield* Clock.currentTimeMillis)
    const [event, made] = yield* (yield* Ids).batch(2)
    const delivery = id ?? made
    yield* sql`insert into dead_letters ${
      sql.insert({
        delivery_id: delivery!,
        webhook_id: webhookId,
        account_id: uuid(1),
        event_id: event!,
        event_type: "email.sent",
        source_id: `source-${event}`,
        body: "{}",
        cycle: 1,
        attempt: 8,
        response_status: 503,
        endpoint_url: url,
        attempts: "[]",
        created_at: now,
        died_at: now,
      })
    }`
    return delivery!
  },
)
