/** The address at the other end of a request's connection. Deno's server tells it beside the request, node:http in it. */
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

/** What Deno's server says of a request's connection; its address is worked out only when it is read. */
export interface Connection {
  readonly remoteAddr: { readonly hostname?: string }
}

/** What is known of a request of Deno's server, and of its answer once there is one. */
export class Came implements Connection {
  private readonly connection: Connection
  /** Of the answer, where it is a long one. */
  bytes = 0
  constructor(connection: Connection) {
    this.connection = connection
  }
  get remoteAddr(): Connection["remoteAddr"] {
    return this.connection.remoteAddr
  }
}

/** On the request itself: a WeakMap of all requests costs more than the rest of the listener, in time and in memory. */
const key = Symbol("came")

/** Remembers the connection of a request of Deno's server. */
export const cameBy = (request: Request, came: Came): Request => Object.assign(request, { [key]: came })

const cameOf = ({ source }: HttpServerRequest.HttpServerRequest) => (source as { readonly [key]?: Came })[key]

/** Notes how long the answer to a request of Deno's server is. */
export const answeredWith = (request: HttpServerRequest.HttpServerRequest, bytes: number): void => {
  const came = cameOf(request)
  if (came !== undefined) came.bytes = bytes
}

/** The address, or null where it is not known. Behind a proxy it is the proxy's: Clients has the client's own. */
export const peerOf = (request: HttpServerRequest.HttpServerRequest): string | null =>
  Option.getOrUndefined(request.remoteAddress) ?? cameOf(request)?.remoteAddr.hostname ?? null
