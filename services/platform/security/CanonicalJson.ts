/** Digests of JSON that do not depend on its formatting: SHA-256 over RFC 8785 (JCS). */
import canonicalize from "canonicalize"
import { createHash } from "node:crypto"

/**
 * Canonical JSON (RFC 8785). Leaves out undefined members; throws on values that JSON cannot hold (NaN, a lone
 * surrogate).
 */
export const canonical = (value: unknown): string => {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError("JSON has no such value")
  return text
}

/** `sha256:` and 64 hexadecimal digits of the canonical form's UTF-8. */
export const digestOf = (value: unknown): string =>
  `sha256:${createHash("sha256").update(canonical(value)).digest("hex")}`

/** The digest before the first event of a chain. */
export const genesis = `sha256:${"0".repeat(64)}`
