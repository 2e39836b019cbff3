/** Checks whether the installation is held, and says what would end that. */
import { Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import {
  type HeldReason,
  type MissingMessages,
  readInstallation,
} from "../../services/platform/database/Installation.ts"
import { type Finding, type Note, note, noteText, ok } from "./Finding.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const opening = `"${cliCommand("installation open --reason R")}"`

/** Why the installation is held, and what ends that. */
const meanings: Readonly<Record<HeldReason, Note>> = {
  restored: note(
    "the database was restored from a backup",
    "an instance with the role lifecycle revokes again what was revoked since",
  ),
  failed_over: note(
    "another database server took over",
    "an instance with the role lifecycle looks for what it may have lost",
  ),
  event_bus_unavailable: note(
    "the broker, which may know what was lost, does not answer",
    "check that it runs",
  ),
  stream_gone: note(
    "the stream with the lost revocations is gone",
    `revoke by hand, then type ${opening}`,
  ),
  unverifiable_messages: note(
    "messages of the lost time cannot be verified",
    `read recovery.looked-back in the audit, revoke by hand, then type ${opening}`,
  ),
  messages_missing: note(
    "messages that may be revocations are missing on the broker",
    `recovery goes on by itself once they are back, or supplied by "${cliCommand("installation supply FILE")}"; ` +
      `otherwise revoke by hand what they may have revoked, then type ${opening}`,
  ),
  intake_behind: note(
    "messages of the lost time are still being taken in",
    "check that an instance with the role intake runs",
  ),
}

/** Why the installation is held and what ends that. */
export const noteOf = (reason: HeldReason): Note => meanings[reason]

/** The same, in words. */
export const meaningOf = (reason: HeldReason): string => noteText(noteOf(reason))

/** Missing messages of a stream, in words. */
export const missingText = ({ epoch, first, last, project_id, stream }: MissingMessages): string => {
  const range = first === last ? `${first}` : `${first} to ${last}`
  return project_id === undefined
    ? `missing on ${stream}: sequence ${range}`
    : `missing on ${stream}: position ${range} of epoch ${epoch} of project ${project_id}`
}

export const installation = Effect.gen(function* () {
  const { epoch, held_reason, missing, state } = yield* readInstallation((yield* Database).sql)
  if (state === "open") return ok("installation", `epoch ${epoch}, open`)
  const { remedy, says } = noteOf(held_reason!)
  return {
    level: "warn",
    what: "installation",
    notes: [
      note(`epoch ${epoch} is held: ${says}`, remedy),
      ...missing.slice(0, 10).map((one) => note(missingText(one))),
    ],
  } satisfies Finding
})
