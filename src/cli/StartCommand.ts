/**
 * `start`: is listed and explained here, and carried out by another process's entry (src/Bailiwick.ts, `task start`),
 * whose signals and exit codes are those of a service.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { startCommand } from "../../services/platform/CommandSpelling.ts"
import { CliFault } from "./CliFault.ts"

export const start = Command.make(
  "start",
  {},
  Effect.fn("cli.start")(() => Effect.fail(new CliFault({ message: `type "${startCommand}", with nothing after it` }))),
).pipe(Command.withDescription("Brings everything up and serves, until Ctrl-C"))
