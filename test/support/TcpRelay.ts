/** A network between a program and a server, which may be slow, stalled, lossy or gone. */
import { Effect } from "effect"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export interface TcpRelay {
  /** On 127.0.0.1. */
  readonly port: number
  /** Passes nothing more, in either direction; connections stay, and new ones are accepted. */
  readonly cut: () => void
  /** Passes new connections again; stalled or refused ones stay so. */
  readonly mend: () => void
  /** Delays the server's answers by this many milliseconds from now on. */
  readonly delay: (millis: number) => void
  /** Keeps what is sent, in either direction, until `go`. */
  readonly hold: () => void
  readonly go: () => void
  /** Ends every connection, and each new one, until `mend`. */
  readonly refuse: () => void
  /** New connections lead to another server from now on, as an address does that moves with the primary. */
  readonly point: (to: URL) => void
  /** Calls `seen` with the server's answers, each once it has been passed on. */
  readonly onAnswer: (seen: (bytes: Uint8Array | string) => void) => void
}

/** A network to the server at `to`'s host and port. */
export const relay = (to: URL) =>
  Effect.acquireRelease(
    Effect.callback<TcpRelay & { readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const held: Array<() => void> = []
      let age = 0
      let way: "open" | "cut" | "refused" = "open"
      let holding = false
      let late = 0
      let there = to
      let seen = (_: Uint8Array | string) => {}
      const destroyAll = () => {
        for (const socket of sockets) socket.destroy()
        sockets.clear()
      }
      const server = createServer((near) => {
        if (way === "refused") return void near.on("error", () => {}).destroy()
        sockets.add(near.on("error", () => {}))
        if (way === "cut") return
        const born = age
        const far = connect(Number(there.port), there.hostname)
        sockets.add(far.on("error", () => {}))
        const pass = (end: Socket, bytes: Uint8Array | string) => {
          if (born !== age) return
          if (holding) held.push(() => born === age && !end.destroyed && end.write(bytes))
          else if (!end.destroyed) end.write(bytes)
        }
        // Timers of equal duration fire in the order of their start; the duration is set before there is traffic.
        near.on("data", (bytes) => pass(far, bytes)).on("close", () => far.destroy())
        const back = (bytes: Uint8Array | string) => {
          pass(near, bytes)
          seen(bytes)
        }
        far.on("data", (bytes) => late === 0 ? back(bytes) : void setTimeout(back, late, bytes))
        far.on("close", () => near.destroy())
      })
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          port: (server.address() as AddressInfo).port,
          cut: () => {
            age++
            way = "cut"
          },
          mend: () => void (way = "open"),
          delay: (millis) => void (late = millis),
          hold: () => void (holding = true),
          go: () => {
            holding = false
            for (const send of held.splice(0)) send()
          },
          refuse: () => {
            age++
            way = "refused"
            destroyAll()
          },
          point: (other) => void (there = other),
          onAnswer: (listener) => void (seen = listener),
          close: () => {
            server.close()
            destroyAll()
          },
        })))
    }),
    ({ close }) => Effect.sync(close),
  )
