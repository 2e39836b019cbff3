/** Servers on loopback for the tests of Outbound, closed with their scope. */
import { Buffer } from "node:buffer"
import { createSocket } from "node:dgram"
import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http"
import { createServer as createHttps } from "node:https"
import { type AddressInfo, createServer as createTcp, isIPv4, type Server, type Socket } from "node:net"
import { Effect } from "effect"

const listening = Effect.fnUntraced(function* (server: Server, host: string) {
  const sockets = new Set<Socket>()
  const seen = { connections: 0, open: 0, peak: 0 }
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    seen.connections++
    seen.peak = Math.max(seen.peak, ++seen.open)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      seen.open--
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, host, () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      }).pipe(Effect.timeoutOrElse({
        duration: "10 seconds",
        // A test that has passed does not fail by it, nor wait for ever.
        orElse: () => Effect.logWarning(`a test's server with ${seen.open} open connections did not close`),
      })),
  )
  return { port: (server.address() as AddressInfo).port, seen }
})

/** An HTTP server, or HTTPS with `tls`; `requests`: all requests that arrived. */
export const serve = Effect.fnUntraced(function* (
  listener: RequestListener,
  options: { readonly tls?: { readonly cert: string; readonly key: string }; readonly host?: string } = {},
) {
  const requests: Array<IncomingMessage> = []
  const record: RequestListener = (request, response) => {
    requests.push(request)
    listener(request, response)
  }
  const server = options.tls === undefined ? createHttp(record) : createHttps(options.tls, record)
  return { ...(yield* listening(server, options.host ?? "127.0.0.1")), requests }
})

/** Listens with any server on a free loopback port. */
export const serveOn = (server: Server) => listening(server, "127.0.0.1")

/** A TCP server that calls `onData` for each chunk that arrives. */
export const serveTcp = (onData: (socket: Socket) => void) =>
  listening(createTcp((socket) => void socket.on("data", () => onData(socket))), "127.0.0.1")

/** A name server's answer: addresses, `null` for NXDOMAIN, `undefined` for none. */
export type Zone = (name: string, family: 4 | 6) => ReadonlyArray<string> | null | undefined

const recordOf = (address: string): Buffer => {
  const v4 = isIPv4(address)
  const bytes = v4 ? Buffer.from(address.split(".").map(Number)) : Buffer.from(
    new URL(`http://[${address}]`).hostname.slice(1, -1).replace(
      /^(.*)::(.*)$/,
      (_, head: string, tail: string) => {
        const [left, right] = [head, tail].map((part) => part === "" ? [] : part.split(":"))
        return [...left!, ...Array(8 - left!.length - right!.length).fill("0"), ...right!].join(":")
      },
    ).split(":").map((group) => group.padStart(4, "0")).join(""),
    "hex",
  )
  const head = Buffer.from([0xc0, 12, 0, v4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, bytes.length])
  return Buffer.concat([head, bytes])
}

/** A name server on UDP; returns its `address:port` and the questions that arrived. */
export const serveNames = Effect.fnUntraced(function* (zone: Zone) {
  const questions: Array<string> = []
  const socket = createSocket("udp4")
  socket.on("message", (query, peer) => {
    const labels: Array<string> = []
    let at = 12
    for (let size = query[at]!; size > 0; size = query[at]!) {
      labels.push(query.toString("latin1", at + 1, at + 1 + size))
      at += 1 + size
    }
    const name = labels.join(".")
    const family = query.readUInt16BE(at + 1) === 28 ? 6 : 4
    questions.push(`${name} ${family}`)
    const answer = zone(name, family)
    if (answer === undefined) return
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(answer === null ? 0x8183 : 0x8180, 2)
    head.writeUInt16BE(answer?.length ?? 0, 6)
    head.writeUInt32BE(0, 8)
    socket.send(
      Buffer.concat([head, query.subarray(12, at + 5), ...(answer ?? []).map(recordOf)]),
      peer.port,
      peer.address,
    )
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void socket.bind(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.callback<void>((resume) => void socket.close(() => resume(Effect.void))),
  )
  return { nameserver: `127.0.0.1:${socket.address().port}`, questions }
})
