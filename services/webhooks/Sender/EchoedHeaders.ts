/**
 * The header fields of an answer without the values of the webhook's custom headers and of its basic authentication,
 * which are sealed at rest: a receiver may send back what it got, under any name.
 */
import { masked } from "../../platform/Outbound/HeadText.ts"

type Fields = Readonly<Record<string, string>>

/** A shorter value masks a field only as its whole value: `1` is in every date. */
const leastLength = 4

/** The values, and what follows the scheme of `Authorization` (RFC 9110, section 11.4), which alone is the secret. */
const secretsOf = (sent: Fields): ReadonlyArray<string> =>
  Object.entries(sent).flatMap(([name, value]) =>
    name.toLowerCase() === "authorization" ? [value, value.slice(value.indexOf(" ") + 1).trim()] : [value]
  )

/** `fields` with each masked that has the name of a field in `sent`, or one of its values. */
export const maskEchoes = (fields: Fields, sent: Fields): Fields => {
  const names = new Set(Object.keys(sent).map((name) => name.toLowerCase()))
  const secrets = secretsOf(sent)
  const echoes = (value: string) =>
    secrets.some((secret) => secret.length < leastLength ? value === secret : value.includes(secret))
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, names.has(name) || echoes(value) ? masked : value]),
  )
}
