/** Parses durations and moments as they are typed. */
import { Duration } from "effect"
import { Flag } from "effect/cli"

const units = new Map([
  ...["ms", "milli"].map((unit) => [unit, 1] as const),
  ...["s", "sec", "second"].map((unit) => [unit, 1_000] as const),
  ...["m", "min", "minute"].map((unit) => [unit, 60_000] as const),
  ...["h", "hour"].map((unit) => [unit, 3_600_000] as const),
  ...["d", "day"].map((unit) => [unit, 86_400_000] as const),
  ...["w", "week"].map((unit) => [unit, 604_800_000] as const),
])

/** Reads `10s`, `1h`, `1.5h`, `10 minutes`; undefined for anything else. */
export const parseDuration = (text: string): Duration.Duration | undefined => {
  const [, amount, name] = /^(\d{1,12}(?:\.\d{1,9})?) ?([a-z]+)$/.exec(text.trim()) ?? []
  const millis = name === undefined ? undefined : units.get(name) ?? units.get(name.replace(/s$/, ""))
  return millis === undefined ? undefined : Duration.millis(Number(amount) * millis)
}

const moment = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/** Reads a moment (`2026-01-31`, `2026-01-31T12:00:00Z`) or how long ago it was (`1h`); milliseconds since the epoch. */
export const parseSince = (text: string, now: number): number | undefined => {
  const ago = parseDuration(text)
  if (ago !== undefined) return now - Duration.toMillis(ago)
  const at = moment.test(text) ? Date.parse(text) : NaN
  return Number.isNaN(at) ? undefined : at
}

const required = <A>(value: A | undefined, what: string): A => {
  if (value === undefined) throw what
  return value
}

/** A flag such as `--ttl 1h`. */
export const durationFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("duration"),
    Flag.mapTryCatch((text) => required(parseDuration(text), "a duration such as 10s, 5m or 1h"), String),
  )

/** A flag such as `--since 1h`; its value gives the moment, seen from the time `now`. */
export const momentFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.mapTryCatch((text) => {
      required(parseSince(text, 0), "a time such as 2026-01-31T12:00:00Z, or how long ago, such as 1h")
      return (now: number) => parseSince(text, now) ?? now
    }, String),
  )

/** A flag such as `--deadline 14d`; its value gives the moment, seen from the time `now`. */
export const untilFlag = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.mapTryCatch((text) => {
      const after = parseDuration(text)
      if (after !== undefined) return (now: number) => now + Duration.toMillis(after)
      const at = required(parseSince(text, 0), "a time such as 2026-01-31, 2026-01-31T12:00:00Z or 14d from now")
      return () => at
    }, String),
  )
