/**
 * Subject identifiers (RFC 9493, 3) and complex subjects (Shared Signals Framework 1.0, 3.3 and 3.5). A format that is
 * not registered is accepted as it is: receivers may have agreed on one elsewhere.
 */
import { Schema } from "effect"

type Members = Readonly<Record<string, unknown>>

/** The members of each format: all are required, and no others allowed (RFC 9493, 3). */
const simple: Readonly<Record<string, ReadonlyArray<string>>> = {
  account: ["uri"],
  email: ["email"],
  iss_sub: ["iss", "sub"],
  opaque: ["id"],
  phone_number: ["phone_number"],
  did: ["url"],
  uri: ["uri"],
  jwt_id: ["iss", "jti"],
  saml_assertion_id: ["issuer", "assertion_id"],
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown) => typeof value === "string" && value !== ""

const named = (subject: Members): ReadonlyArray<string> => Object.keys(subject).filter((name) => name !== "format")

const only = (subject: Members, members: ReadonlyArray<string>) => {
  const names = named(subject)
  return names.length === members.length && members.every((name) => names.includes(name))
}

const isList = (value: unknown, of: (item: unknown) => boolean) =>
  Array.isArray(value) && value.length > 0 && value.every(of)

/** The fault of a simple identifier, or null. */
const simpleFault = (value: unknown, within: "aliases" | "complex" | null): string | null => {
  if (!isMembers(value)) return "a subject identifier is an object"
  const { format } = value
  if (typeof format !== "string" || format === "") return "a subject identifier has a format"
  if (format === "complex" || format === "aliases" && within === "aliases") {
    return `${format} may not stand in ${within}`
  }
  if (format === "aliases") {
    return only(value, ["identifiers"]) && isList(value["identifiers"], (one) => simpleFault(one, "aliases") === null)
      ? null
      : "aliases has identifiers, each of them one"
  }
  if (format === "ip-addresses") {
    return only(value, ["ip-addresses"]) && isList(value["ip-addresses"], isText)
      ? null
      : "ip-addresses has a list of them"
  }
  const members = Object.hasOwn(simple, format) ? simple[format] : undefined
  if (members === undefined) return named(value).length > 0 ? null : "a subject identifier has members"
  return only(value, members) && members.every((name) => isText(value[name]))
    ? null
    : `${format} has ${members.join(" and ")}, and no more`
}

/** The fault of a subject, or null. */
const faultOf = (value: unknown): string | null => {
  if (!isMembers(value) || value["format"] !== "complex") return simpleFault(value, null)
  if (named(value).length === 0) return "a complex subject has members"
  return named(value).map((name) => simpleFault(value[name], "complex")).find((fault) => fault !== null) ?? null
}

/** The most characters of a subject's JSON. */
const longest = 8_192

/** Checked: an identifier, or a complex subject whose members are identifiers. */
export const Subject = Schema.StructWithRest(Schema.Struct({ format: Schema.String }), [
  Schema.Record(Schema.String, Schema.Unknown),
]).check(
  Schema.isMaxProperties(100),
  Schema.makeFilter(
    (subject: Members) =>
      JSON.stringify(subject).length > longest
        ? `a subject has at most ${longest} characters`
        : faultOf(subject) ?? true,
    {
      toJsonSchema: () => [{}, true],
    },
  ),
).annotate({
  identifier: "SubjectIdentifier",
  description: "A subject identifier (RFC 9493), or a complex subject of the Shared Signals Framework.",
})
export type Subject = typeof Subject.Type
