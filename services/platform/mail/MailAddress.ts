/**
 * Parses mail addresses, strictly: `local@domain` of RFC 5321, 4.1.2 with a dot-atom on the left and host names on the
 * right.
 *
 * No quoted local parts, comments, display names, address literals or anything beyond ASCII: an address that passes can
 * be used in an SMTP envelope as it is. Two addresses are the same where they differ at most in the case of ASCII
 * letters; Unicode's case folding would take U+212A, the kelvin sign, for a k.
 */

export interface MailAddress {
  readonly local: string
  readonly domain: string
}

const local = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const label = /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/

/** The parts of an address as they were written, or null where the text is no address. Limits of RFC 5321, 4.5.3.1. */
export const parse = (text: string): MailAddress | null => {
  if (text.length > 254) return null
  const at = text.lastIndexOf("@")
  const address = { local: text.slice(0, at), domain: text.slice(at + 1) }
  if (at < 1 || at > 64 || !local.test(address.local)) return null
  const labels = address.domain.split(".")
  // A last label of digits only would be read as an IPv4 address.
  return labels.every((part) => label.test(part)) && !/^\d+$/.test(labels.at(-1)!) ? address : null
}

const lower = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 32))

/** Whether two texts are the same address; neither has to be a valid one. */
export const sameAddress = (a: string, b: string): boolean => lower(a) === lower(b)

/** `j***@example.com`: the first character, and the domain where it is an address. */
export const masked = (recipient: string): string => {
  const [first = ""] = recipient
  const address = parse(recipient)
  return address === null ? `${first}***` : `${first}***@${address.domain}`
}
