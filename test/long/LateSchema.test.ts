/** A start on a database whose schema is incomplete, and is completed only long after. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Database } from "../../services/platform/database/Database.ts"
import * as Processes from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

layer(Layer.merge(TestDatabase.layer, TestBus.layer), { excludeTestServices: true })("a start", (it) => {
  it.effect(
    "with a missing table reports that it is not ready, and is ready once the table exists",
    () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const database = yield* TestDatabase
        const home = yield* Processes.home
        yield* owner`alter table slack_messages rename to slack_messages_away`
        const program = yield* Processes.start({
          env: {
            BAILIWICK_HOME: home,
            PORT: "0",
            ROLES: "relay",
            LOG_FORMAT: "json",
            DATABASE_URL: Redacted.value(database.url),
            DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
            NATS_URL: Redacted.value((yield* TestBus).url),
          },
        })
        yield* program.line(/lacks a table: not ready yet/)
        assert.isFalse(existsSync(join(home, "runtime.json")))
        yield* owner`alter table slack_messages_away rename to slack_messages`
        yield* program.line(/bailiwick ready: relay\n/)
        assert.isTrue(existsSync(join(home, "runtime.json")))
      }),
    240_000,
  )
})
