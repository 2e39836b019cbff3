/**
 * The hosts and ports that a user's URL may name (docs/api/mail.md).
 *
 * Invariants:
 * - Hosts are read as the WHATWG URL parser reads them: `127.1`, `0x7f.1`, `2130706433` and `localhost.` are loopback.
 * - An IPv6 address that embeds an IPv4 address (mapped, 6to4, NAT64 by the well-known prefix of RFC 6052) is checked
 *   as that IPv4 address, whichever IPv6 ranges the operator allowed.
 * - Of the other IPv6 addresses only global unicast is public: a range that IANA assigns later is refused until this
 *   list has it.
 * - Cloud metadata addresses are always refused, also inside the prefix of an address translator.
 * - `allows` alone decides: for literals when a URL is stored, for every resolved address at each connection.
 */
import { isIP, isIPv4 } from "node:net"
import { Result } from "effect"
import ipaddr from "ipaddr.js"
import { refusedPorts } from "./BlockedPorts.ts"

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [Address, number]

const ranges = (...cidrs: ReadonlyArray<string>): ReadonlyArray<Range> => cidrs.map((cidr) => ipaddr.parseCIDR(cidr))

// IANA's special-purpose registries (RFC 6890 and its updates), with deprecated and documentation prefixes.
const closedV4 = ranges(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
)
// The only IPv6 range that IANA assigned to global unicast (RFC 4291, section 2.4).
const globalV6 = ranges("2000::/3")
// Refused within it: protocol assignments (Teredo, benchmarking, ORCHID), and documentation.
const closedV6 = ranges("2001::/23", "2001:db8::/32", "3fff::/20")

// Metadata services of clouds, credentials of containers (ECS, EKS), and Azure's platform, whose address is public.
const metadataV4 = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16"]
const metadataV6 = ranges("fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128")

// The bytes of an IPv6 address that embed an IPv4 address: 6to4, then RFC 6052 for each prefix length, 96 bits last.
const embeddings = [
  [2, 3, 4, 5],
  [4, 5, 6, 7],
  [5, 6, 7, 9],
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
]

const within = (address: Address, list: ReadonlyArray<Range>): boolean =>
  list.some(([base, bits]) =>
    address instanceof ipaddr.IPv4
      ? base instanceof ipaddr.IPv4 && address.match(base, bits)
      : base instanceof ipaddr.IPv6 && address.match(base, bits)
  )

const isMetadata = (address: Address): boolean => {
  if (address instanceof ipaddr.IPv4) return metadataV4.includes(address.toString())
  if (within(address, metadataV6)) return true
  const bytes = address.toByteArray()
  if (embeddings.some((at) => metadataV4.includes(at.map((index) => bytes[index]).join(".")))) return true
  // Teredo (RFC 4380) stores the client's address inverted.
  return metadataV4.includes(bytes.slice(12).map((byte) => byte ^ 0xff).join("."))
}

const sixToFour = ranges("2002::/16")
const nat64 = ranges("64:ff9b::/96")

/** The IPv4 address that is reached through an IPv6 address; without one, the address itself. */
const embeddedV4 = (address: Address): Address => {
  if (address instanceof ipaddr.IPv4) return address
  if (address.isIPv4MappedAddress()) return address.toIPv4Address()
  const bytes = address.toByteArray()
  if (within(address, nat64)) return new ipaddr.IPv4(bytes.slice(12))
  return within(address, sixToFour) ? new ipaddr.IPv4(bytes.slice(2, 6)) : address
}

/** The address that a connection to `text` would reach; null if `text` is not an address. */
const parse = (text: string): Address | null => {
  // Without this check the library would also accept `1.2.3`.
  if (isIP(text) === 0) return null
  return embeddedV4(ipaddr.parse(text))
}

/** Reads CIDR ranges (`10.0.0.0/8`, `fd00::/8`); fails with the first text that is not one. */
export const parseCidrs = (cidrs: ReadonlyArray<string>): Result.Result<ReadonlyArray<Range>, string> => {
  const parsed: Array<Range> = []
  for (const cidr of cidrs) {
    const text = cidr.trim()
    if (isIP(text.split("/")[0]!) === 0 || !ipaddr.isValidCIDR(text)) return Result.fail(cidr)
    const [base, bits] = ipaddr.parseCIDR(text)
    parsed.push(
      base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96
        ? [base.toIPv4Address(), bits - 96]
        : [base, bits],
    )
  }
  return Result.succeed(parsed)
}

/** Whether the text of an address is in one of these ranges; an IPv4-mapped address counts as IPv4. */
export const matching = (list: ReadonlyArray<Range>) => (text: string): boolean =>
  isIP(text) !== 0 && within(ipaddr.process(text), list)

export interface AddressPolicy {
  /** Whether a connection may be made to this address (as text, from a resolver or a socket). */
  readonly allows: (address: string) => boolean
  /** Whether this address is in a range that the operator allowed. Only such addresses may be reached by plain http. */
  readonly allowsHttp: (address: string) => boolean
  /** Whether a URL of this protocol (`https:`, `http:`) may name this port. */
  readonly allowsPort: (port: number, protocol: string) => boolean
}

/** `allowedRanges`: from `parseCidrs`; `ownPorts`: ports that this installation listens on, never a destination. */
export const make = (
  config: { readonly allowedRanges: ReadonlyArray<Range>; readonly ownPorts: ReadonlyArray<number> },
): AddressPolicy => {
  const own = new Set(config.ownPorts)
  const inAllowedRange = (address: Address) => !isMetadata(address) && within(address, config.allowedRanges)
  const isAllowed = (address: Address): boolean => {
    if (isMetadata(address)) return false
    if (within(address, config.allowedRanges)) return true
    if (address instanceof ipaddr.IPv4) return !within(address, closedV4)
    return within(address, globalV6) && !within(address, closedV6)
  }
  return {
    allows: (text) => {
      const address = parse(text)
      return address !== null && isAllowed(address)
    },
    allowsHttp: (text) => {
      const address = parse(text)
      return address !== null && inAllowedRange(address)
    },
    allowsPort: (port, protocol) => {
      if (own.has(port) || refusedPorts.has(port)) return false
      return port >= 1024 || port === 443 || (port === 80 && protocol === "http:")
    },
  }
}

/** Whether a name means loopback (RFC 6761, section 6.3); a resolver is never asked for it. */
export const isLocalhost = (hostname: string): boolean => /^(?:.+\.)?localhost\.*$/i.test(hostname)

/** The addresses of `localhost`; the policy decides whether they may be reached. */
export const loopback = ["127.0.0.1", "::1"]

/** The address in a URL's `hostname` if it is a literal, else null. */
export const literalOf = (hostname: string): string | null => {
  if (hostname.startsWith("[")) return hostname.slice(1, -1)
  return isIPv4(hostname) ? hostname : null
}
