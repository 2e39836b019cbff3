/**
 * Waits for a PostgreSQL that is away or starting: machines and containers start in any order. A fault that waiting
 * does not mend (credentials, a missing database, a malformed address, a pooler between) fails at once.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Predicate, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql"
import { reasonOf } from "../SqlErrors.ts"
import { Pooled, probe, refusesParameters } from "./Pooled.ts"
import { watched } from "./StalledConnections.ts"

/** Nothing listens there, its name is not known yet, or the network is not up. */
const unreachable = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
])

/**
 * The server starts or stops (57P01 to 57P03), has no connection left (53300), or the connection was lost (class 08).
 */
const starting = /^(57P0[123]|53300|08)/

/** Messages of a connection that was accepted and then closed: by a proxy whose server is away, or by our deadline. */
const silent = /closed unexpectedly|does not answer|timed? ?out/i

const answerSeconds = 5
const onceMore = Schedule.spaced("500 millis")

/** Whether a later attempt may succeed with the same configuration. */
export const isAway = ({ reason }: SqlError.SqlError): boolean => {
  let at: unknown = reason
  for (let depth = 0; depth < 6 && Predicate.isObject(at); depth++) {
    const inner: unknown = at instanceof AggregateError ? at.errors[0] : "cause" in at ? at.cause : undefined
    if (Predicate.hasProperty(at, "code") && typeof at.code === "string") {
      const noSocketYet = at.code === "ENOENT" && "syscall" in at && at.syscall === "connect"
      return noSocketYet || unreachable.has(at.code) || starting.test(at.code)
    }
    if (inner === undefined || inner === null) return at instanceof Error && silent.test(at.message)
    at = inner
  }
  return false
}

/** Connects once to the server of `url`. Fails with Pooled where a pooler keeps from it what connections set. */
export const direct = (url: Redacted.Redacted): Effect.Effect<void, SqlError.SqlError | Pooled> =>
  PgClient.make({
    url,
    applicationName: "bailiwick",
    maxConnections: 1,
    connectTimeout: `${answerSeconds} seconds`,
    stream: watched(Redacted.value(url), answerSeconds),
    startupParameters: probe.parameters,
  }).pipe(
    Effect.flatMap(probe.kept),
    Effect.scoped,
    Effect.provide(Reactivity.layer),
    Effect.catchIf(refusesParameters, () => Effect.succeed(false)),
    Effect.flatMap((kept) => kept ? Effect.void : Effect.fail(new Pooled({ host: new URL(Redacted.value(url)).host }))),
  )

/** Waits until the server takes a connection at `url`; logs once that it waits, and why. */
export const awaited = (url: Redacted.Redacted): Effect.Effect<void, SqlError.SqlError | Pooled> => {
  let said = false
  const later = (error: SqlError.SqlError | Pooled) => error._tag === "SqlError" && isAway(error)
  return direct(url).pipe(
    Effect.tapError((error) => {
      if (said || error._tag === "Pooled" || !isAway(error)) return Effect.void
      said = true
      const { host } = new URL(Redacted.value(url))
      return Effect.logWarning(`PostgreSQL at ${host} is away or starting: waiting for it (${reasonOf(error)})`)
    }),
    Effect.retry({ schedule: onceMore, while: later }),
  )
}
