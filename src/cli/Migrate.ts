import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { fillNow } from "../MigrationBackfills.ts"
import { migrateWith } from "../Migrations.ts"
import { database, instance } from "./Instance.ts"
import * as Progress from "./Progress.ts"

export const migrateCommand = Command.make(
  "migrate",
  {},
  Effect.fn("cli.migrate")(function* () {
    const { config } = yield* instance
    const { clear, tell } = yield* Progress.make
    const pace = { floor: config.backfillFloor, ceiling: config.backfillRate }
    const applied = yield* Effect.ensuring(migrateWith(fillNow(pace, tell)), clear)
    for (const name of applied) yield* Console.log(`applied ${name}`)
    if (applied.length === 0) yield* Console.log("nothing to apply, the schema is up to date")
  }, Effect.provide(database)),
).pipe(Command.withDescription("Applies the migrations that are missing, as the owner's role (DATABASE_OWNER_URL)"))
