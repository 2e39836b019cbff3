/**
 * `reset`: removes the data of the home's embedded servers, also outside of the home. No other command empties an
 * embedded database, as `restore` needs it.
 */
import { Console, Effect } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import { existsSync, readdirSync, rmdirSync } from "node:fs"
import process from "node:process"
import * as AppConfig from "../AppConfig.ts"
import * as Home from "../embedded/Home.ts"
import * as Reset from "../embedded/ResetHome.ts"
import { CliFault } from "./CliFault.ts"
import { addressOf } from "../ServerAddress.ts"
import { printable } from "./EscapeControls.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const off = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

const flags = {
  database: off("database", "The database alone, for restore: the broker's streams and everything else stay"),
  keys: off("keys", "The key ring, too: no backup of this home can be read any more"),
  yes: off("yes", "Does not ask"),
}

const confirmed = Effect.gen(function* () {
  if (process.stdin.isTTY !== true) {
    return yield* new CliFault({
      message: "nothing was removed: standard input is no terminal to confirm at, add --yes",
    })
  }
  const answer = yield* Prompt.run(Prompt.Confirm({ message: "Remove all of this for good?", initial: false })).pipe(
    Effect.catchTag("QuitError", () => Effect.interrupt),
  )
  if (!answer) return yield* new CliFault({ message: "nothing was removed" })
})

/** Removes the home where it is empty; a home with the user's own files stays. */
const leave = (home: string) =>
  Effect.sync(() => {
    const left = existsSync(home) ? readdirSync(home) : []
    if (left.length === 0 && existsSync(home)) rmdirSync(home)
    return left
  })

const run = Effect.fnUntraced(function* ({ yes, ...what }: Reset.What & { readonly yes: boolean }) {
  const { databaseUrl, home, natsUrl } = yield* AppConfig.load
  if (databaseUrl !== null) {
    const at = printable(addressOf(databaseUrl))
    return yield* new CliFault({
      message:
        `DATABASE_URL names ${at}, which is not the home's: drop that database and create it again with PostgreSQL's ` +
        `tools, then type "${cliCommand("migrate")}" or "restore"; without DATABASE_URL this resets ${home}`,
    })
  }
  if ((yield* Reset.found(home, what)).length === 0) return yield* Console.log(`nothing to remove in ${home}`)
  yield* Effect.scoped(Effect.gen(function* () {
    yield* Home.open(home)
    for (const path of yield* Reset.found(home, what)) yield* Console.log(printable(path))
    if (!yes) yield* confirmed
    yield* Reset.remove(home, what)
  }))
  const left = yield* leave(home)
  yield* Console.log(
    left.length === 0 ? `removed, ${home} as well` : `removed; left in ${home}: ${printable(left.join(", "))}`,
  )
  if (natsUrl !== null && !what.database) {
    yield* Console.log(`messages stay in the streams at ${printable(addressOf(natsUrl))}: delete the streams there`)
  }
})

export const reset = Command.make("reset", flags, Effect.fn("cli.reset")(run)).pipe(
  Command.withDescription("Removes the home's embedded data, also where it lies outside of the home; asks before"),
)
