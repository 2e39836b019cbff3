/**
 * Domain names and URIs of the identity API. The tables of the specification bound their length alone; the further
 * rules here keep sign-ins from being sent to other sites (RFC 9700, 2.1 and 4.1).
 */
import { Schema } from "effect"
import { complains, valueError } from "../Validation/Fault.ts"

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const foreign = /[\s/\\?#@:%[\]|<>^`{}*_]/u

/** A domain name in lower case and A-labels (RFC 5891), without the root's dot; null where the text is none. */
export const domainName = (text: string): string | null => {
  if (text === "" || foreign.test(text)) return null
  const url = URL.parse(`http://${text}/`)
  if (url === null) return null
  const name = url.hostname.replace(/\.$/, "")
  const labels = name.split(".")
  // A last label of digits only would be read as an IPv4 address.
  return name.length <= 253 && labels.every((part) => label.test(part)) && !/^\d+$/.test(labels.at(-1)!) ? name : null
}

export const DomainName = Schema.String.check(
  Schema.makeFilter<string>((text) => domainName(text) !== null, {
    expected: "a domain name",
    toJsonSchema: () => [{ format: "idn-hostname" }, true],
    ...complains(valueError("not a domain name")),
  }),
)

/** Whether an address is plain http on this machine: allowed in staging, never in production. */
export const isLocal = (uri: string): boolean => local.test(uri)

// A scheme and a host are the same in capitals (RFC 3986, 3.1 and 3.2.2).
const local = /^http:\/\/localhost(:\d{1,5})?(\/|\?|$)/i
const secure = /^https:\/\/[^\s/\\?#@]+/i

/**
 * Whether a URI is absolute, https (or this machine's), without fragment, user information or wildcard, in any
 * spelling.
 */
export const isPlainUri = (text: string): boolean => {
  if (/[\s\\#*\p{Cc}]/u.test(text) || !(secure.test(text) || local.test(text))) return false
  const url = URL.parse(text)
  return url !== null && url.hostname !== "" && !url.hostname.includes("*") && url.username === "" &&
    url.password === "" && !/^https?:\/\/[^/?]*@/i.test(text)
}

/** The check of a redirect, logout or launch URI. */
export const plain = Schema.makeFilter<string>(isPlainUri, {
  expected: "an absolute https URI",
  toJsonSchema: () => [{ format: "uri" }, true],
  ...complains(valueError("an absolute https URI without fragment, user information or wildcard is needed")),
})

export const PlainUri = Schema.String.check(plain)

/** Whether a host is one of these domains or a subdomain of one. */
export const liesUnder = (host: string, domains: ReadonlyArray<string>): boolean => {
  const name = host.toLowerCase().replace(/\.$/, "")
  return domains.some((domain) => {
    const own = domainName(domain)
    return own !== null && (name === own || name.endsWith(`.${own}`))
  })
}
