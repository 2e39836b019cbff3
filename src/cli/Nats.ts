/** `nats permissions`: prints the broker's users and what each may publish and read. */
import { Console } from "effect"
import { Command } from "effect/cli"
import { permissions } from "./NatsPermissions.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const permissionsCommand = Command.make("permissions", {}, () => Console.log(permissions)).pipe(
  Command.withDescription("Prints the block of nats-server's configuration for each kind of publisher and subscriber"),
  Command.withExamples([
    { command: cliCommand("nats permissions > users.conf"), description: "A file that nats.conf includes" },
  ]),
)

export const nats = Command.make("nats").pipe(
  Command.withDescription("The broker's users"),
  Command.withSubcommands([permissionsCommand]),
)
