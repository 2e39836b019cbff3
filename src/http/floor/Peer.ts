/** The address at the other end of a request's connection. Deno's server tells it beside the request, node:http in it. */
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

/** What Deno's server says of a connection; its address is worked out only when it is read. */
export interface Connection {
  readonly remoteAddr: { readonly hostname?: string }
}

const connections = new WeakMap<object, Connection>()

/** Remembers the connection of a request of Deno's server. */
export const cameBy = (request: Request, connection: Connection): Request => {
  connections.set(request, connection)
  return request
}

/** The address, or null where nobody knows it. Behind a proxy it is the proxy's. */
export const peerOf = (request: HttpServerRequest.HttpServerRequest): string | null =>
  Option.getOrUndefined(request.remoteAddress) ?? connections.get(request.source)?.remoteAddr.hostname ?? null
