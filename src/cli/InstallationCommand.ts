/** `installation`: shows the epoch and why the installation is held, and opens it on an operator's word. */
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { openInstallation } from "../../services/operations/OpenInstallation.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { readInstallation } from "../../services/platform/database/Installation.ts"
import { meaningOf, missingText } from "../doctor/InstallationCheck.ts"
import { installationJson } from "../doctor/InstallationJson.ts"
import { CliFault } from "./CliFault.ts"
import { database } from "./Instance.ts"
import { asFlag, operatorNamed, reasonFlag } from "./OperatorName.ts"
import { printable, printableJson } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"

const show = Command.make(
  "show",
  { json: jsonFlag },
  Effect.fn("cli.installation.show")(function* ({ json }) {
    const row = yield* readInstallation((yield* Database).sql)
    if (json) return yield* Console.log(printableJson(installationJson(row)))
    const { epoch, held_reason, held_since, lost_since, missing, state } = row
    if (state === "open") return yield* Console.log(`epoch ${epoch}, open`)
    yield* Console.log(`epoch ${epoch}, held since ${held_since!.toISOString()}: ${meaningOf(held_reason!)}`)
    yield* Console.log(`decisions may be lost since ${(lost_since ?? held_since)!.toISOString()}`)
    for (const one of missing) yield* Console.log(printable(missingText(one)))
  }, Effect.provide(database)),
).pipe(Command.withDescription("Shows the epoch, and why the installation is held where it is"))

const open = Command.make(
  "open",
  { as: asFlag, reason: reasonFlag },
  Effect.fn("cli.installation.open")(function* ({ as, reason }) {
    const opened = yield* Effect.provideService(
      (yield* openInstallation)(reason),
      CurrentOperator,
      operatorNamed(as),
    )
    if (opened === null) return yield* new CliFault({ message: "the installation is not held" })
    yield* Console.log(`epoch ${opened} is open; access that was not revoked again is in effect`)
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(Command.withDescription("Opens a held installation on the operator's word, even where revocations may be lost"))

export const installation = Command.make("installation").pipe(
  Command.withDescription("After a restore or a fail-over: whether changes may take effect"),
  Command.withSubcommands([show, open]),
)
