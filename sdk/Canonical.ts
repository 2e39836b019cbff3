/** Digests of JSON that do not depend on how it was written: SHA-256 over RFC 8785 (JCS). */
import { createHash } from "node:crypto"

export type Json = string | number | boolean | null | ReadonlyArray<Json> | {
  readonly [name: string]: Json
}

/** As `canonical`, but with what JSON.stringify makes of a lone surrogate, and no faults but of numbers. */
const written = (value: Json): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value === "number") {
    // JSON.parse makes Infinity of 1e999, which JSON.stringify then writes as null.
    if (!Number.isFinite(value)) throw new TypeError("no such number has a canonical form")
    return JSON.stringify(value)
  }
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`
  const members = value as { readonly [name: string]: Json }
  const names = Object.keys(members)
  if (names.length > 1) names.sort()
  let text = ""
  for (const name of names) {
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${written(members[name]!)}`
  }
  return `{${text}}`
}

const wellFormed = (value: Json): boolean => {
  if (typeof value === "string") return value.isWellFormed()
  if (value === null || typeof value !== "object") return true
  if (Array.isArray(value)) return value.every(wellFormed)
  return Object.entries(value).every(([name, one]) => name.isWellFormed() && wellFormed(one))
}

/** RFC 8785: members by UTF-16 code units, numbers and strings as ECMAScript writes them. Throws on what JSON cannot say. */
export const canonical = (value: Json): string => {
  const text = written(value)
  // A lone surrogate is the only thing that JSON.stringify escapes so; a text may also say it of itself, after a backslash.
  if (text.includes("\\ud") && !wellFormed(value)) throw new TypeError("a lone surrogate has no canonical form")
  return text
}

/** `sha256:` and 64 hexadecimal digits of a text's UTF-8. */
export const sha256 = (value: string): string => `sha256:${createHash("sha256").update(value, "utf8").digest("hex")}`

export const digestOf = (value: Json): string => sha256(canonical(value))

/** What a history's chain begins with. */
export const genesis = `sha256:${"0".repeat(64)}`

/** A member by its path; undefined where there is none. */
export const member = (
  value: Json | undefined,
  ...path: ReadonlyArray<string>
): Json | undefined =>
  path.reduce<Json | undefined>(
    (at, name) =>
      at !== null && typeof at === "object" && !Array.isArray(at) &&
        Object.hasOwn(at, name)
        ? (at as { readonly [name: string]: Json })[name]
        : undefined,
    value,
  )
