/** `installation`: which epoch it is, whether it is held and why; and an operator's word that it may open. */
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
import { printable } from "./Printable.ts"

const opening = '"deno task cli installation open --reason R"'

/** What keeps it held, and what ends that. */
export const meanings: Readonly<Record<HeldReason, string>> = {
  restored:
    "a backup was put in its place: an instance with the role lifecycle takes away again what it had taken away",
  failed_over: "another server took its place: an instance with the role lifecycle looks for what it may have lost",
  event_bus_unavailable: "the broker cannot be asked what was lost: see that it runs",
  stream_gone: `the stream that knows what was revoked is gone: revoke by hand, then type ${opening}`,
  unverifiable_messages:
    "messages of the lost time cannot be verified: see recovery.looked-back in the audit, revoke by hand, then type " +
    opening,
  messages_missing:
    "messages that may say what was revoked are missing on the broker: once it has them again it goes on by itself; " +
    `otherwise revoke by hand what they may have said, then type ${opening}`,
  intake_behind:
    "what came in during the lost time is still being taken in: see that an instance with the role intake runs",
}

/** What a stream lacks, in words. */
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
).pipe(Command.withDescription("Says which epoch it is, and why it is held where it is"))

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
        ...{ action: "installation.opened", actor: "operator", subject: `installation:${row.epoch}`, outcome: "done" },
        details: { reason, held_reason: row.held_reason },
      })
      return row
    }))
    if (opened === null) return yield* new CliFault({ message: "it is not held" })
    yield* Console.log(`epoch ${opened.epoch} is open; what was not revoked again is in effect`)
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(Command.withDescription("Opens a held installation on an operator's word, whatever was lost"))

export const installation = Command.make("installation").pipe(
  Command.withDescription("After a restore or a fail-over: whether new things may be activated"),
  Command.withSubcommands([show, open]),
)
