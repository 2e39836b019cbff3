/**
 * Destroys connections to PostgreSQL that do not answer. The server limits how long a statement may take, but that does
 * not help where the server is frozen or a network drops packets: TCP itself waits for a quarter of an hour. So a
 * connection that waits for an answer and is silent for longer than the server's limit is destroyed; its statement
 * fails as on any lost connection, and the pool makes a new connection.
 *
 * Silence is counted in ticks of a timer, not in time: a process that was frozen wakes to one tick, and first reads the
 * data in its sockets. Under TLS the answers cannot be recognised: there TCP's keepalive alone watches the connection.
 */
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { connect, type Socket } from "node:net"

const lookMillis = 1_000
const keepAliveMillis = 10_000
/** Ticks that are allowed within `allowLonger`: its statements may take five minutes. */
const longest = 330
/** Seconds on top of the server's limit: the round trip, and busy machines. */
export const grace = 3

let allowed = 0

/**
 * For the rare work that raises `statement_timeout` itself, to five minutes at most: no connection is destroyed
 * earlier.
 */
export const allowLonger = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(Effect.sync(() => void allowed++), () => work, () => Effect.sync(() => void allowed--))

/** ReadyForQuery without its last byte: the server has answered everything so far. */
const ready = Buffer.from([0x5a, 0, 0, 0, 5])
/** The answer of a server that speaks TLS to an SSLRequest. */
const speaksTls = 0x53

const watch = (socket: Socket, patience: number) => {
  let asked = false
  let silent = 0
  let greeted = false
  let tail: Uint8Array = Buffer.alloc(0)
  const { write } = socket
  const looking = setInterval(() => {
    if (!asked || socket.isPaused() || ++silent <= (allowed > 0 ? Math.max(patience, longest) : patience)) return
    socket.destroy(new Error("the database does not answer: the connection is given up"))
  }, lookMillis)
  looking.unref()
  const heard = (chunk: Uint8Array) => {
    if (!greeted && chunk.length === 1 && chunk[0] === speaksTls) return stop()
    greeted = true
    silent = 0
    tail = (chunk.length > ready.length ? chunk : Buffer.concat([tail, chunk])).subarray(-ready.length - 1)
    if (ready.equals(tail.subarray(0, ready.length))) asked = false
  }
  const stop = () => {
    clearInterval(looking)
    socket.off("data", heard)
    socket.write = write
  }
  socket.write = ((...args: Parameters<Socket["write"]>) => {
    if (!asked) silent = 0
    asked = true
    return write.apply(socket, args)
  }) as Socket["write"]
  socket.on("data", heard)
  socket.once("close", stop)
}

/**
 * A factory of a pool's sockets, each destroyed after so many seconds of silence; undefined where the address is no
 * host and port, so that the library connects in its own way.
 */
export const watched = (url: string, patience: number): (() => Socket) | undefined => {
  const { hostname, port, searchParams } = new URL(url)
  if (hostname === "" || searchParams.has("host")) return undefined
  return () => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || 5432),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMillis,
    })
    watch(socket, patience)
    return socket
  }
}
