/** A time, as people say it, with the exact one as its title. */
import { signal } from "@preact/signals"
import type { JSX } from "preact"

/** The time of the page, which moves on every few seconds while the page is visible. */
export const now = signal(Date.now())
setInterval(() => {
  if (document.visibilityState === "visible") now.value = Date.now()
}, 5_000)

const units = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]] as const
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" })
/** Whether exact times are said in UTC, and not in the visitor's own zone. It lasts as long as the page. */
export const inUtc = signal(false)

const date = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" } as const

/** A time with its zone, to the second or to the minute. */
export const exactly = (at: string, minute: boolean): string =>
  new Intl.DateTimeFormat("en-GB", {
    ...date,
    ...(minute ? {} : { second: "2-digit" }),
    timeZoneName: "short",
    ...(inUtc.value ? { timeZone: "UTC" } : {}),
  }).format(new Date(at))

/** `3 minutes ago`, `in 2 hours`. */
export const relativeTo = (at: number, from: number): string => {
  const seconds = (at - from) / 1_000
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit)
  }
  return Math.abs(seconds) < 5 ? "now" : relative.format(Math.round(seconds), "second")
}

/** A time; `never` where there is none. `exact`: the exact time is shown beside. `minute`: `at` begins its minute. */
export const When = ({ at, exact = false, minute = false, never = "never" }: {
  readonly at: string | null
  readonly exact?: boolean
  readonly minute?: boolean
  readonly never?: string
}): JSX.Element => {
  if (at === null) return <span class="note">{never}</span>
  const said = exactly(at, minute)
  // Of a minute that is not over, its end is now.
  const from = minute ? Math.min(Date.parse(at) + 60_000, now.value) : Date.parse(at)
  return (
    <time dateTime={at} title={`${said} (${at})`}>
      {relativeTo(from, now.value)}
      {exact
        ? (
          <>
            <span class="comma">,</span> <span class="note">{said}</span>
          </>
        )
        : null}
    </time>
  )
}
