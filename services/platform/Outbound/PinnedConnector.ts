/**
 * Makes connections: resolves the name, checks every address, connects to a checked one and checks the peer's address.
 *
 * The lookup passes the checked addresses themselves to the socket, so a later DNS answer changes nothing (DNS
 * rebinding). Literals skip the lookup: `UrlCheck` has checked them, and the peer's address is checked as always.
 */
import type { buildConnector } from "undici"
import { type LookupFunction, Socket } from "node:net"
import { Effect } from "effect"
import { BoundedMap } from "../BoundedMap.ts"
import { counted } from "../MapSizes.ts"
import { type AddressPolicy, isLocalhost } from "./AddressPolicy.ts"
import { connecting, Failure, isUntrusted } from "./Failure.ts"
import type { Resolved } from "./DnsResolver.ts"
import { buildConnector as connectorOf } from "./UndiciParts.ts"

export type Resolve = (hostname: string) => Promise<ReadonlyArray<Resolved>>

export interface Checked {
  readonly resolve: Resolve
  readonly policy: AddressPolicy
  /** Called after each lookup with the addresses that may be connected to; an empty set if the name is refused. */
  readonly resolved?: (hostname: string, addresses: ReadonlySet<string>) => void
}

/** Resolves and checks. One refused address refuses the name; of `localhost` the allowed addresses are enough. */
const checkedLookup = ({ policy, resolve, resolved }: Checked): LookupFunction => (hostname, options, callback) => {
  const check = (addresses: ReadonlyArray<Resolved>): ReadonlyArray<Resolved> => {
    const allowed = addresses.filter(({ address }) => policy.allows(address))
    const refused = allowed.length === 0 || (allowed.length < addresses.length && !isLocalhost(hostname))
    resolved?.(hostname, new Set(refused ? [] : allowed.map(({ address }) => address)))
    if (refused) throw new Failure("blocked_address")
    return allowed
  }
  resolve(hostname).then(check).then(
    (allowed) => {
      if (options.all) callback(null, [...allowed])
      else callback(null, allowed[0]!.address, allowed[0]!.family)
    },
    (error: Error) => callback(error, "", 0),
  )
}

/** A connector and `stop`, which destroys sockets that are still connecting: callers get a socket once connected. */
const stoppable = (options: buildConnector.BuildOptions) => {
  const unfinished = new Set<Socket>()
  const build = connectorOf(options)
  const connect: buildConnector.connector = (target, callback) => {
    const socket: unknown = build(target, (...made) => {
      if (socket instanceof Socket) unfinished.delete(socket)
      callback(...made)
    })
    if (socket instanceof Socket) unfinished.add(socket)
  }
  const stop = () => {
    for (const socket of unfinished) socket.destroy(new Failure("timeout"))
  }
  return { connect, stop }
}

const maxPrivateHosts = 4_096

/**
 * Connects with the runtime's authorities (`runtime`); if they do not know the certificate, with the configured ones
 * (`configured`). Two attempts rather than one joined list: Deno parses a list of authorities for each connection
 * (20 ms for the system's list), and the runtime's own store costs nothing. `hosts` remembers the hosts that needed the
 * configured ones.
 */
const withAuthorities = (
  runtime: buildConnector.connector,
  configured: buildConnector.connector | null,
  hosts: BoundedMap<string, true>,
): buildConnector.connector => {
  if (configured === null) return runtime
  return (target, callback) => {
    if (target.protocol !== "https:") return runtime(target, callback)
    const [first, second] = hosts.has(target.hostname) ? [configured, runtime] : [runtime, configured]
    first(target, (...made) => {
      const [error] = made
      if (error === null || !isUntrusted(error)) return callback(...made)
      second(target, (...again) => {
        if (again[0] !== null) return callback(...again)
        if (second === configured) hosts.set(target.hostname, true)
        else hosts.delete(target.hostname)
        callback(...again)
      })
    })
  }
}

/**
 * A scoped connector with undici's interface. Fails with `Failure`. Without `checked` it is for the operator's own
 * URLs: the system's lookup, no address policy.
 */
export const make = Effect.fnUntraced(function* (config: {
  readonly checked: Checked | null
  readonly authorities: ReadonlyArray<string>
  readonly timeoutMillis: number
}) {
  const { authorities, checked } = config
  const options = {
    allowH2: false,
    timeout: config.timeoutMillis,
    ...(checked === null ? {} : { lookup: checkedLookup(checked) }),
  }
  const runtime = stoppable(options)
  const configured = authorities.length === 0 ? null : stoppable({ ...options, ca: [...authorities] })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      runtime.stop()
      configured?.stop()
    })
  )
  const hosts = new BoundedMap<string, true>(maxPrivateHosts)
  yield* counted(`hosts of private authorities, ${checked === null ? "trusted" : "checked"}`, () => hosts.size)
  const connect = withAuthorities(runtime.connect, configured?.connect ?? null, hosts)

  const connector: buildConnector.connector = (target, callback) =>
    connect(target, (...made) => {
      const [error, socket] = made
      if (error !== null) return callback(connecting(error, target.protocol), null)
      if (checked === null) return callback(null, socket)
      const peer = socket.remoteAddress
      if (peer !== undefined && checked.policy.allows(peer)) return callback(null, socket)
      socket.on("error", () => {}).destroy()
      callback(new Failure(peer === undefined ? "connect" : "blocked_address"), null)
    })
  return connector
})
