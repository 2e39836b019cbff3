/**
 * How a connection is made: resolve, check every address, connect to a checked one, check the peer once more.
 *
 * The lookup gives the socket the very list that was checked, so a name that changes its answer changes nothing.
 * Literals never reach the lookup: `UrlCheck` has judged them, and the peer's address is checked like any other.
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

export type Names = (hostname: string) => Promise<ReadonlyArray<Resolved>>

export interface Checked {
  readonly names: Names
  readonly policy: AddressPolicy
  /** Told what a name's newest addresses are that may be connected to; none where the name is refused. */
  readonly resolved?: (hostname: string, addresses: ReadonlySet<string>) => void
}

/** Resolves and checks: one refused address refuses the name, but `localhost` is whatever of it the policy opens. */
const checkedLookup = ({ names, policy, resolved }: Checked): LookupFunction => (hostname, options, callback) => {
  const check = (addresses: ReadonlyArray<Resolved>): ReadonlyArray<Resolved> => {
    const allowed = addresses.filter(({ address }) => policy.allows(address))
    const refused = allowed.length === 0 || (allowed.length < addresses.length && !isLocalhost(hostname))
    resolved?.(hostname, new Set(refused ? [] : allowed.map(({ address }) => address)))
    if (refused) throw new Failure("blocked_address")
    return allowed
  }
  names(hostname).then(check).then(
    (allowed) => {
      if (options.all) callback(null, [...allowed])
      else callback(null, allowed[0]!.address, allowed[0]!.family)
    },
    (error: Error) => callback(error, "", 0),
  )
}

/** A connector whose unfinished sockets `stop` can end: its callers know a socket only once it is connected. */
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
 * Trusts what the runtime trusts (`ours`), or else the given authorities (`theirs`). Two attempts rather than one joined list: Deno reads
 * a list of authorities anew for each connection (20 ms for the system's), and the runtime's own store costs nothing.
 * The hosts that needed the given ones are remembered.
 */
const withAuthorities = (
  ours: buildConnector.connector,
  theirs: buildConnector.connector | null,
  hosts: BoundedMap<string, true>,
): buildConnector.connector => {
  if (theirs === null) return ours
  return (target, callback) => {
    if (target.protocol !== "https:") return ours(target, callback)
    const [first, second] = hosts.has(target.hostname) ? [theirs, ours] : [ours, theirs]
    first(target, (...made) => {
      const [error] = made
      if (error === null || !isUntrusted(error)) return callback(...made)
      second(target, (...again) => {
        if (again[0] !== null) return callback(...again)
        if (second === theirs) hosts.set(target.hostname, true)
        else hosts.delete(target.hostname)
        callback(...again)
      })
    })
  }
}

/** A scoped connector in undici's form. Without `checked` it serves the operator's own URLs: the system's lookup, no policy. */
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
  const ours = stoppable(options)
  const theirs = authorities.length === 0 ? null : stoppable({ ...options, ca: [...authorities] })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      ours.stop()
      theirs?.stop()
    })
  )
  const hosts = new BoundedMap<string, true>(maxPrivateHosts)
  yield* counted(`hosts of private authorities, ${checked === null ? "trusted" : "checked"}`, () => hosts.size)
  const connect = withAuthorities(ours.connect, theirs?.connect ?? null, hosts)

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
