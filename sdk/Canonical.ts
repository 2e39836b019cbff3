/** Digests of JSON values, independent of their spelling: SHA-256 over RFC 8785 (JCS). */
import { createHash } from "node:crypto"

export type Json = string | number | boolean | null | ReadonlyArray<Json> | {
  readonly [name: string]: Json
}

/** As `canonical`, but escapes a lone surrogate as JSON.stringify does, instead of throwing. */
const written = (value: Json): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value === "number") {
    // JSON.parse reads 1e999 as Infinity, which JSON.stringify would write as null.
    if (!Number.isFinite(value)) throw new TypeError("a number that is not finite has no canonical form")
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

/**
 * The canonical text of a value (RFC 8785): members sorted by UTF-16 code units, numbers and strings as ECMAScript
 * writes them. Throws TypeError for a number that is not finite, and for a lone surrogate.
 */
export const canonical = (value: Json): string => {
  const text = written(value)
  // JSON.stringify writes `\ud…` only for a lone surrogate, but a text may contain these characters itself.
  if (text.includes("\\ud") && !wellFormed(value)) throw new TypeError("a lone surrogate has no canonical form")
  return text
}

/** SHA-256 of a text's UTF-8: `sha256:` and 64 hexadecimal digits. */
export const sha256 = (value: string): string => `sha256:${createHash("sha256").update(value, "utf8").digest("hex")}`

export const digestOf = (value: Json): string => sha256(canonical(value))

/** The digest before a history's first event. */
export const genesis = `sha256:${"0".repeat(64)}`

/** A member by its path; undefined if it does not exist. */
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
