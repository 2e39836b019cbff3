/**
 * The connection of a request, as the edge knows it: its remote address, and the wait for the request's body. Deno's
 * server passes the address beside the request, node:http inside the request.
 */
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The connection of a request, as Deno's server describes it. Deno computes the address only when it is read. */
export interface Connection {
  readonly remoteAddr: { readonly hostname?: string }
}

/**
 * Tells the listener that the rest of a body is awaited for this caller. Where connections are short, or the server
 * stops, it may call `giveUp`. Returns a function for the caller to call when the wait is over.
 */
export type Awaits = (caller: string, giveUp: (stopping: boolean) => void) => () => void

/** The connection of a request, and the length of its answer once there is one. */
export class Came implements Connection {
  private readonly connection: Connection
  readonly awaits: Awaits
  /** The length of the answer, where it is long; otherwise 0. */
  bytes = 0
  constructor(connection: Connection, awaits: Awaits) {
    this.connection = connection
    this.awaits = awaits
  }
  get remoteAddr(): Connection["remoteAddr"] {
    return this.connection.remoteAddr
  }
}

/**
 * Kept on the request itself: a WeakMap of all requests costs more than the rest of the listener, in time and in
 * memory.
 */
const key = Symbol("came")

/** Remembers the connection of a server's request. */
export const cameBy = <R extends object>(request: R, came: Came): R => Object.assign(request, { [key]: came })

const cameOf = ({ source }: HttpServerRequest.HttpServerRequest) => (source as { readonly [key]?: Came })[key]

/** Records the length of the answer to a request of Deno's server. */
export const answeredWith = (request: HttpServerRequest.HttpServerRequest, bytes: number): void => {
  const came = cameOf(request)
  if (came !== undefined) came.bytes = bytes
}

const unbounded: Awaits = () => () => {}

/** The wait for the request's body, as its listener counts it. */
export const awaitsOf = (request: HttpServerRequest.HttpServerRequest): Awaits => cameOf(request)?.awaits ?? unbounded

/**
 * The address, or null where it is not known. Behind a proxy it is the proxy's address: `Clients` finds the client's.
 */
export const peerOf = (request: HttpServerRequest.HttpServerRequest): string | null =>
  Option.getOrUndefined(request.remoteAddress) ?? cameOf(request)?.remoteAddr.hostname ?? null
