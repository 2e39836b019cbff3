/** `directory apply FILE`: applies directory lines from a file instead of the bus. */
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { Directory } from "../../services/directory/Directory.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { Notifications } from "../../services/notifications/Notifications.ts"
import { PersonEventFanout } from "../../services/people/PersonEventFanout.ts"
import { Roles } from "../../services/people/Roles.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { WakeUps } from "../../services/platform/messaging/WakeUps.ts"
import { Jobs } from "../../services/platform/messaging/Jobs.ts"
import { Mails } from "../../services/platform/mail/Mails.ts"
import { Outbox } from "../../services/platform/messaging/Outbox.ts"
import { Timers } from "../../services/platform/database/Timers.ts"
import { allKinds, trustInFiles } from "../DirectoryKinds.ts"
import { Unsuccessful } from "./CliFault.ts"
import { busIfKnown, database, instance } from "./Instance.ts"
import { fileArgument, linesOf } from "./ReadLines.ts"
import { printable } from "./EscapeControls.ts"
import * as Progress from "./Progress.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const services = Directory.layer(allKinds).pipe(
  // Lines can end service grants and propose none, so no issuer is needed.
  Layer.provide(Layer.mergeAll(AccessVersions.layer, PersonEventFanout.layer(), ServiceGrants.layer({ issuers: [] }))),
  Layer.provide(Roles.layer),
  Layer.provide(Layer.merge(EventLog.layer, Jobs.layer)),
  Layer.provide(Notifications.layer),
  Layer.provide([Mails.layer, Timers.layer]),
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(WakeUps.layer),
  Layer.provideMerge(busIfKnown),
  Layer.provideMerge(Audit.layer),
  Layer.provideMerge(database),
)

interface Counts {
  readonly applied: number
  readonly ignored: number
  readonly rejected: number
}

const counts = (total: Counts) => `applied ${total.applied}, ignored ${total.ignored}, rejected ${total.rejected}`

const apply = Command.make(
  "apply",
  { file: fileArgument },
  Effect.fn("cli.directory.apply")(function* ({ file }) {
    const { config } = yield* instance
    const progress = yield* Progress.make
    let so: Counts = { applied: 0, ignored: 0, rejected: 0 }
    const summary = Effect.suspend(() => Effect.andThen(progress.clear, Console.log(counts(so))))
    const total = yield* (yield* Directory).applyFile(
      linesOf(file),
      Effect.fnUntraced(function* (now, refused) {
        so = now
        if (refused.length > 0) yield* progress.clear
        for (const { detail, line, reason } of refused) {
          yield* Console.log(`line ${line}: ${reason}: ${printable(detail)}`)
        }
        yield* progress.tell(counts(now))
      }),
      trustInFiles(config.identityDirectory),
      // Interrupted or not, prints the counts of the lines that were committed.
    ).pipe(Effect.ensuring(summary))
    if (total.rejected > 0) return yield* new Unsuccessful()
  }, Effect.provide(services)),
).pipe(
  Command.withDescription(
    "Applies a file of directory lines in order; ignores lines of an older or equal version, and lines of Access that " +
      "contradict a decision of this program (decided_here)",
  ),
  Command.withExamples([
    { command: cliCommand("directory apply accounts.ndjson"), description: "Apply a file" },
    { command: cliCommand("directory apply -"), description: "Apply the lines of standard input" },
  ]),
)

export const directory = Command.make("directory").pipe(
  Command.withDescription("Accounts and domains, people, institutions and projects, and what belongs to them"),
  Command.withSubcommands([apply]),
)
