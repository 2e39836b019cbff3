/**
 * Limits how long a stopping process waits for a service that never answers, such as a database behind a network that
 * drops packets, which no statement timeout reaches. Leases free the rows that the process held.
 */
import process from "node:process"
import { setTimeout } from "node:timers"

/** Longer than any service takes that does answer; shorter than orchestrators wait before they kill (30 s). */
const patienceMillis = 25_000

/** Call once per process. */
export const endAnyway = (): void => {
  const begin = () => {
    const end = () => {
      process.stderr.write(
        "bailiwick: a service did not answer within 25 s of the request to stop; ended without waiting for it\n",
      )
      process.exit(1)
    }
    setTimeout(end, patienceMillis).unref()
  }
  process.once("SIGTERM", begin)
  process.once("SIGINT", begin)
}
