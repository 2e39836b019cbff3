/** Digests of JSON that do not depend on how it was written: SHA-256 over RFC 8785 (JCS). */
import { createHash } from "node:crypto"

export type Json = string | number | boolean | null | ReadonlyArray<Json> | {
  readonly [name: string]: Json
}

const text = (value: string): string => {
  if (!value.isWellFormed()) {
    throw new TypeError("a lone surrogate has no canonical form")
  }
  return JSON.stringify(value)
}

/** RFC 8785: members by UTF-16 code units, numbers and strings as ECMAScript writes them. Throws on what JSON cannot say. */
export const canonical = (value: Json): string => {
  if (typeof value === "string") return text(value)
  // JSON.parse makes Infinity of 1e999, which JSON.stringify then writes as null.
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("no such number has a canonical form")
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  const members = value as { readonly [name: string]: Json }
  let written = ""
  for (const name of Object.keys(members).sort()) {
    written += `${written === "" ? "" : ","}${text(name)}:${canonical(members[name]!)}`
  }
  return `{${written}}`
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
