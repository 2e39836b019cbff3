import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { migrate } from "../Migrations.ts"
import { database } from "./Instance.ts"

export const migrateCommand = Command.make(
  "migrate",
  {},
  Effect.fn("cli.migrate")(function* () {
    const applied = yield* migrate
    for (const name of applied) yield* Console.log(`applied ${name}`)
    if (applied.length === 0) yield* Console.log("nothing to apply, the schema is up to date")
  }, Effect.provide(database)),
).pipe(Command.withDescription("Applies the migrations that are missing, as the owner's role (DATABASE_OWNER_URL)"))
