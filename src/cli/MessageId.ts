/** The message id of a line, by which the broker drops a repeat within its window. */
import { Predicate } from "effect"

const directory = /^intake\.v1\.(identity-)?directory\./

const parse = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

/** A header's value: no control characters, of sane length. */
const fits = /^[^\p{Cc}]{1,512}$/u

/** `kind.id.version` of a directory line, `account_id.id` of anything else; null where a part is missing. */
export const messageId = (subject: string, line: string): string | null => {
  const value = parse(line)
  if (!Predicate.isObject(value)) return null
  const names = directory.test(subject) ? ["kind", "id", "version"] : ["account_id", "id"]
  const parts = names.map((name) => name in value ? Reflect.get(value, name) : undefined)
  if (!parts.every((part) => (typeof part === "string" && part !== "") || typeof part === "number")) return null
  const id = parts.join(".")
  return fits.test(id) ? id : null
}
