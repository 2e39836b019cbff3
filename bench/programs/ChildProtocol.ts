/** Common parts of the bench's programs: reports, the clock, and their ports. */
import type { Server } from "node:net"
import process from "node:process"
import { refusedPorts } from "../../services/platform/Outbound/BlockedPorts.ts"

/** Reports one event to the bench, as a line of JSON. */
export const say = (event: string, fields: Readonly<Record<string, unknown>>) =>
  void process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`)

/** Milliseconds since 1970 with fractions, comparable between processes of one machine. */
export const now = (): number => performance.timeOrigin + performance.now()

export const variable = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

/** Listens on a free loopback port below those that the system hands out to clients, which webhooks may name. */
export const listenBelow = async (server: Server): Promise<number> => {
  for (let tries = 0; tries < 50; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (refusedPorts.has(port)) continue
    const bound = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false))
      server.listen({ port, host: "127.0.0.1", backlog: 1024 }, () => resolve(true))
    })
    if (bound) return port
  }
  throw new Error("no free port")
}
