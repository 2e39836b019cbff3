/**
 * A process that was asked to end, and waits for something that never answers: a database behind a network that swallows
 * what is sent, which no statement's timeout reaches. What it held is freed by leases, so it goes without a word more.
 */
import process from "node:process"
import { setTimeout } from "node:timers"

/** Longer than anything takes that answers; shorter than what orchestrators wait before they kill (30 s). */
const patienceMillis = 25_000

/** For the program's own process, once. */
export const endAnyway = (): void => {
  const begin = () => {
    const end = () => {
      process.stderr.write("bailiwick: something does not answer; ended without waiting for it\n")
      process.exit(1)
    }
    setTimeout(end, patienceMillis).unref()
  }
  process.once("SIGTERM", begin)
  process.once("SIGINT", begin)
}
