/**
 * Connections that are given up where nothing comes back. How long a statement may take is the
 * server's to say, and nobody says it where the server stands still, or where a network swallows what is sent: TCP itself
 * goes on for a quarter of an hour. So a connection that was asked something and is silent for longer than the server may
 * be is destroyed; what it was asked fails like on any lost connection, and the next one is made anew.
 *
 * Silence is counted in looks, not in time: a process that was frozen wakes to one look, and reads first what lay in its
 * sockets. Under TLS there is nothing to see here: such connections are watched by TCP's keepalive alone.
 */
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { connect, type Socket } from "node:net"

const lookMillis = 1_000
const keepAliveMillis = 10_000
/** Looks at what `allowLonger` allows: its statements may take five minutes. */
const longest = 330
/** Seconds beside those that the server may take: the way there and back, and machines that are busy. */
export const grace = 3

let allowed = 0

/** For the rare work that raises `statement_timeout` itself, to five minutes at most; no connection is given up meanwhile. */
export const allowLonger = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(Effect.sync(() => void allowed++), () => work, () => Effect.sync(() => void allowed--))

/** ReadyForQuery, but for its last byte: the server has answered all that it was asked so far. */
const ready = Buffer.from([0x5a, 0, 0, 0, 5])
/** What a server that speaks TLS answers to being asked for it. */
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
 * What makes a pool's connections, each given up after so many seconds of silence; undefined where the address is no host
 * and port, and the library's own way is taken.
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
