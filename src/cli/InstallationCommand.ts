/**
 * `installation`: shows the epoch and why the installation is held, supplies messages that are missing, and opens the
 * installation on an operator's word.
 */
import { Console, Effect, Layer, Stream } from "effect"
import { Command } from "effect/cli"
import { openInstallation } from "../../services/operations/OpenInstallation.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { readInstallation } from "../../services/platform/database/Installation.ts"
import { type GivenMessage, supplyMessages } from "../../services/recovery/SuppliedMessages.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"
import { givenMessage } from "./GivenMessage.ts"
import { fileArgument, linesOf } from "./ReadLines.ts"
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

/** Messages that are verified and kept at a time: what came before a refused line stays supplied. */
const suppliedAtOnce = 500

const supplyFile = Effect.fnUntraced(function* (file: string, reason: string) {
  const supply = yield* supplyMessages
  let added = 0
  let passedOver = 0
  let epoch: number | null = null
  const one = Effect.fnUntraced(function* (lines: ReadonlyArray<readonly [line: string, at: number]>) {
    const messages: Array<GivenMessage> = []
    for (const [line, at] of lines) {
      const message = givenMessage(line)
      if (message === null) {
        return yield* new CliFault({
          message: `line ${at + 1} is neither a message as "nats stream get --json" prints it nor a signed event; ` +
            `supplied before it: ${added}`,
        })
      }
      messages.push(message)
    }
    const supplied = yield* supply(messages, reason)
    if (supplied === null) {
      return yield* new CliFault({ message: `the installation is not held for missing messages; supplied: ${added}` })
    }
    if (supplied.refused !== null) {
      const { at, why } = supplied.refused
      return yield* new CliFault({ message: `line ${lines[at]![1] + 1}: ${why}; supplied before it: ${added}` })
    }
    added += supplied.added
    passedOver += supplied.passedOver
    epoch = supplied.epoch
  })
  yield* linesOf(file).pipe(
    Stream.zipWithIndex,
    Stream.filter(([line]) => line.trim() !== ""),
    Stream.grouped(suppliedAtOnce),
    Stream.runForEach(one),
  )
  if (epoch === null) return yield* new CliFault({ message: `${file} has no messages` })
  if (passedOver > 0) yield* Console.log(`passed over ${passedOver}: this database has these events`)
  yield* Console.log(`supplied ${added}; recovery reads them within a second: see "${cliCommand("installation show")}"`)
})

const supply = Command.make(
  "supply",
  { as: asFlag, file: fileArgument, reason: reasonFlag },
  Effect.fn("cli.installation.supply")(
    ({ as, file, reason }) => Effect.provideService(supplyFile(file, reason), CurrentOperator, operatorNamed(as)),
    Effect.provide(Layer.provideMerge(Audit.layer, database)),
  ),
).pipe(
  Command.withDescription(
    "Supplies messages that the broker lost, from a mirror, an export or a consumer, and has them verified",
  ),
)

export const installation = Command.make("installation").pipe(
  Command.withDescription("After a restore or a fail-over: whether changes may take effect"),
  Command.withSubcommands([show, supply, open]),
)
