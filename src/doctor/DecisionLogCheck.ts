/** Checks whether the transparency log goes on, and how old the oldest decision is that it has yet to publish. */
import { Clock, Effect } from "effect"
import { type HeldLogReason, logStatus } from "../../services/transparency/DecisionLog.ts"
import { witnessStatus } from "../../services/transparency/Witnesses.ts"
import { fail, ok, warn } from "./Finding.ts"

const what = "decision log"
/** A checkpoint has a decision within a second. One that waits for so long shows that no process can publish it. */
const lateMillis = 60_000

const meanings: Readonly<Record<HeldLogReason, string>> = {
  behind: "the broker has a larger log than this database, which was put back to an earlier state",
  different: "the broker has a log with other entries than this database",
  unreadable: "the broker has no checkpoint of this log as its last one",
  gone: "after a restore, the broker has lost checkpoints that this database knows, and maybe others",
}

const meaningOf = (reason: HeldLogReason): string => `the transparency log is held: ${meanings[reason]}`

/** Why the log gets no new checkpoint, in words; null where it gets one. */
export const heldLog = Effect.map(logStatus, (status) => status?.held ? meaningOf(status.held) : null)

export const decisionLogCheck = Effect.gen(function* () {
  const status = yield* logStatus
  if (status === null) return ok(what, "has not begun", "a process with the role lifecycle begins it")
  const { held, published, size, waitingSince } = status
  if (held !== null) return fail(what, meaningOf(held), "read docs/transparency.md, on restored databases")
  const now = yield* Clock.currentTimeMillis
  const entries = `${size} entries, ${published ?? 0} of them published`
  const faulty = (yield* witnessStatus).filter(({ fault }) => fault !== null)
  if (faulty.length > 0) {
    return warn(
      what,
      `${entries}; ${faulty.map(({ fault, name }) => `the witness ${name} ${fault}`).join("; ")}`,
      "read docs/transparency.md, on witnesses",
    )
  }
  return waitingSince !== null && now - waitingSince.getTime() > lateMillis
    ? warn(
      what,
      `${entries}; a decision waits for over a minute`,
      "does a process with the role lifecycle run, and what does it log of the log?",
    )
    : ok(what, entries)
})
