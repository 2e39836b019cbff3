/**
 * The client address of a request: the connection's address or, where that belongs to a trusted proxy, the right-most
 * address of X-Forwarded-For (of Forwarded, RFC 7239, where the former is absent) that belongs to no trusted proxy.
 * Addresses to the left of it are the client's own claim.
 */
import { Context, Layer, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { isIP } from "node:net"
import { matching, parseCidrs } from "../../../services/platform/Outbound/AddressPolicy.ts"
import { peerOf } from "./RemoteAddress.ts"

type Request = HttpServerRequest.HttpServerRequest

/**
 * Parses an address as proxies write it, `192.0.2.1:4711` and `"[2001:db8::1]:4711"` among others; null where there is
 * none.
 */
const addressIn = (text: string): string | null => {
  const plain = text.trim().replace(/^"(.*)"$/, "$1")
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(plain)?.[1] ?? /^([\d.]+):\d+$/.exec(plain)?.[1] ?? plain
  return isIP(address) === 0 ? null : address
}

/** One entry per proxy, in the order in which the request passed them. */
const hopsOf = ({ headers }: Request): ReadonlyArray<string> => {
  const listed = headers["x-forwarded-for"]
  if (listed !== undefined) return listed.split(",")
  return headers["forwarded"]?.split(",").map((hop) => /(?:^|;)\s*for=("[^"]*"|[^;]*)/i.exec(hop)?.[1] ?? "") ?? []
}

/** `trusted`: CIDR ranges of proxies. */
export const through = (trusted: ReadonlyArray<string>) => {
  const isTrusted = matching(Result.getOrThrow(parseCidrs(trusted)))
  return (request: Request): string | null => {
    let client = peerOf(request)
    if (client === null || !isTrusted(client)) return client
    for (const hop of hopsOf(request).toReversed()) {
      const address = addressIn(hop)
      // This proxy names no address: its own is the last one known.
      if (address === null) return client
      client = address
      if (!isTrusted(client)) return client
    }
    return client
  }
}

/** Without its layer no proxy is trusted. */
export class Clients extends Context.Reference<{ readonly addressOf: (request: Request) => string | null }>(
  "bailiwick/http/edge/Clients",
  { defaultValue: () => ({ addressOf: peerOf }) },
) {
  static readonly layer = (trusted: ReadonlyArray<string>) =>
    Layer.succeed(Clients, { addressOf: trusted.length === 0 ? peerOf : through(trusted) })
}
