/** A network between a program and a server, which may begin to swallow what is sent. */
import { Effect } from "effect"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export interface Relay {
  /** On 127.0.0.1. */
  readonly port: number
  /** Lets nothing through any more, in either direction; connections stand, and new ones are taken. */
  readonly cut: () => void
  /** Lets new connections through again; what was cut stays so. */
  readonly mend: () => void
}

/** The way to a server on `to`'s host and port. */
export const relay = (to: URL) =>
  Effect.acquireRelease(
    Effect.callback<Relay & { readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      let age = 0
      let whole = true
      const server = createServer((near) => {
        sockets.add(near.on("error", () => {}))
        if (!whole) return
        const born = age
        const far = connect(Number(to.port), to.hostname)
        sockets.add(far.on("error", () => {}))
        near.on("data", (bytes) => born === age && far.write(bytes)).on("close", () => far.destroy())
        far.on("data", (bytes) => born === age && near.write(bytes)).on("close", () => near.destroy())
      })
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          port: (server.address() as AddressInfo).port,
          cut: () => {
            age++
            whole = false
          },
          mend: () => void (whole = true),
          close: () => {
            server.close()
            for (const socket of sockets) socket.destroy()
          },
        })))
    }),
    ({ close }) => Effect.sync(close),
  )
