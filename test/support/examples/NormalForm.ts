/**
 * The normal form of a recorded exchange: whatever differs from run to run is replaced by a fixed text of the same
 * shape. Ids are numbered by their first appearance, the earliest time is a fixed one and the others keep their distance
 * from it in minutes, and keys, tokens, secrets, digests and signatures are made of a few letters. A normal form is its
 * own normal form, so a test finds a value that was not replaced.
 */

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g
const local = /https?:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?/g

/** Standard base64 of 18 bytes and more, as a whole text; a path has no digit beside letters of both cases. */
const base64 = /^(?=.*\d)(?=.*[A-Z])(?=.*[a-z])(?:[a-z]{2,8}_)?[A-Za-z0-9+][A-Za-z0-9+/]{23,}={0,2}$/

/** A part of a text that no person wrote: letters and digits, long. */
const random =
  /mail_k_[A-Za-z0-9_-]+|[A-Za-z0-9_-]{20,}|(?<![A-Za-z0-9])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,19}(?![A-Za-z0-9])/g

const first = Date.parse("2026-03-01T12:00:00.000Z")
const minute = 60_000

/** Seconds and milliseconds of the years that tests run in. */
const isSeconds = (value: number) => Number.isInteger(value) && value > 1.6e9 && value < 2.6e9
const isMillis = (value: number) => Number.isInteger(value) && value > 1.6e12 && value < 2.6e12

/** The letters of a class, in turn. */
const turning = (letters: string) => {
  let next = 0
  return () => letters[next++ % letters.length]!
}

const shaped = (text: string): string => {
  const prefix = /^(?:[a-z]{1,8}_)+/.exec(text)?.[0] ?? ""
  const rest = text.slice(prefix.length)
  if (prefix !== "mail_k_" && !(/\d/.test(rest) && /[a-z]/i.test(rest))) return text
  const [lower, upper, digit] = [turning("example"), turning("EXAMPLE"), turning("0123456789")]
  if (/^[0-9a-f]+$/.test(rest)) return prefix + rest.replaceAll(/./g, turning("0123456789abcdef"))
  return prefix + rest.replaceAll(/[a-z]/g, lower).replaceAll(/[A-Z]/g, upper).replaceAll(/\d/g, digit)
}

/** Every text and number of a value, in their order. */
const scalarsIn = (value: unknown): ReadonlyArray<string | number> =>
  typeof value === "string" || typeof value === "number"
    ? [value]
    : typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, item]) => [name, ...scalarsIn(item)])
    : []

const timesIn = (value: unknown): ReadonlyArray<number> =>
  scalarsIn(value).flatMap((one) =>
    typeof one === "number"
      ? isSeconds(one) ? [one * 1_000] : isMillis(one) ? [one] : []
      : [...one.matchAll(instant)].map(([text]) => Date.parse(text))
  )

/** So many items of a list are shown. */
const items = 2

const shortened = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.slice(0, items).map(shortened)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shortened(item)]))
    : value

export const normalForm = <A>(given: A): A => {
  const value = shortened(given)
  const ids = new Map<string, string>()
  const earliest = Math.min(...timesIn(value))
  const moved = (time: number) => first + Math.round((time - earliest) / minute) * minute
  const idFor = (id: string) => {
    const known = ids.get(id.toLowerCase()) ??
      `0199f3a2-7c1e-7d0a-8000-${String(ids.size + 1).padStart(12, "0")}`
    ids.set(id.toLowerCase(), known)
    return known
  }
  const plain = (text: string) => base64.test(text) ? shaped(text) : text.replaceAll(random, shaped)
  const text = (one: string): string => {
    const timed = one.replaceAll(local, "https://mail.example.com").replaceAll(
      instant,
      (time) => new Date(moved(Date.parse(time))).toISOString(),
    )
    const found = [...timed.matchAll(uuid)].map(([id]) => idFor(id))
    return timed.split(uuid).map(plain).flatMap((part, n) => n < found.length ? [part, found[n]!] : [part]).join("")
  }
  const whole = (one: unknown): unknown =>
    typeof one === "string"
      ? text(one)
      : typeof one === "number"
      ? isSeconds(one) ? moved(one * 1_000) / 1_000 : isMillis(one) ? moved(one) : one
      : Array.isArray(one)
      ? one.map(whole)
      : typeof one === "object" && one !== null
      ? Object.fromEntries(
        Object.entries(one).map(([name, item]) => [name.match(uuid) ? text(name) : name, whole(item)]),
      )
      : one
  return whole(value) as A
}
