/** `installation`: shows the epoch and why the installation is held, and opens it on an operator's word. */
import { Clock, Console, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { Database } from "../../services/platform/database/Database.ts"
import {
  type HeldReason,
  type MissingMessages,
  readInstallation,
} from "../../services/platform/database/Installation.ts"
import { CliFault } from "./CliFault.ts"
import { database } from "./Instance.ts"
import { printable } from "./EscapeControls.ts"

const opening = '"deno task cli installation open --reason R"'

/** Why the installation is held, and what ends that. */
export const meanings: Readonly<Record<HeldReason, string>> = {
  restored:
    "the database was restored from a backup: an instance with the role lifecycle revokes again what was revoked since",
  failed_over: "another database server took over: an instance with the role lifecycle looks for what it may have lost",
  event_bus_unavailable: "the broker, which may know what was lost, does not answer: check that it runs",
  stream_gone: `the stream with the lost revocations is gone: revoke by hand, then type ${opening}`,
  unverifiable_messages:
    "messages of the lost time cannot be verified: read recovery.looked-back in the audit, revoke by hand, then type " +
    opening,
  messages_missing:
    "messages that may be revocations are missing on the broker: recovery goes on by itself once they are back; " +
    `otherwise revoke by hand what they may have revoked, then type ${opening}`,
  intake_behind: "messages of the lost time are still being taken in: check that an instance with the role intake runs",
}

/** Missing messages of a stream, in words. */
export const missingText = ({ epoch, first, last, project_id, stream }: MissingMessages): string => {
  const range = first === last ? `${first}` : `${first} to ${last}`
  return project_id === undefined
    ? `missing on ${stream}: sequence ${range}`
    : `missing on ${stream}: position ${range} of epoch ${epoch} of project ${project_id}`
}

const show = Command.make(
  "show",
  {},
  Effect.fn("cli.installation.show")(function* () {
    const { epoch, held_reason, held_since, lost_since, missing, state } = yield* readInstallation(
      (yield* Database).sql,
    )
    if (state === "open") return yield* Console.log(`epoch ${epoch}, open`)
    yield* Console.log(`epoch ${epoch}, held since ${held_since!.toISOString()}: ${meanings[held_reason!]}`)
    yield* Console.log(`decisions may be lost since ${(lost_since ?? held_since)!.toISOString()}`)
    for (const one of missing) yield* Console.log(printable(missingText(one)))
  }, Effect.provide(database)),
).pipe(Command.withDescription("Shows the epoch, and why the installation is held where it is"))

const reason = Flag.String("reason").pipe(
  Flag.withDescription("Why, for the audit: 8 to 500 characters"),
  Flag.filter((text) => [...text].length >= 8 && [...text].length <= 500, () => "a reason of 8 to 500 characters"),
)

const open = Command.make(
  "open",
  { reason },
  Effect.fn("cli.installation.open")(function* ({ reason }) {
    const { sql } = yield* Database
    const audit = yield* Audit
    const now = new Date(yield* Clock.currentTimeMillis)
    const opened = yield* sql.withTransaction(Effect.gen(function* () {
      const [row] = yield* sql<{ epoch: number; held_reason: HeldReason }>`
        select epoch, held_reason from installation where state = 'held' for update`
      if (row === undefined) return null
      yield* sql`
        update installation set state = 'open', held_since = null, held_reason = null, missing = '[]', opened_at = ${now}`
      yield* audit.append({
        action: "installation.opened",
        actor: "operator",
        subject: `installation:${row.epoch}`,
        outcome: "done",
        details: { reason, held_reason: row.held_reason },
      })
      return row
    }))
    if (opened === null) return yield* new CliFault({ message: "the installation is not held" })
    yield* Console.log(`epoch ${opened.epoch} is open; access that was not revoked again is in effect`)
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(Command.withDescription("Opens a held installation on the operator's word, even where revocations may be lost"))

export const installation = Command.make("installation").pipe(
  Command.withDescription("After a restore or a fail-over: whether changes may take effect"),
  Command.withSubcommands([show, open]),
)
