/**
 * Arrivals of a lifecycle's messages and their times: at a subscriber of JetStream and at a receiver of push (RFC
 * 8935). While time is measured arrivals are only recorded; their contents are checked afterwards.
 */
import { DeliverPolicy, jetstream } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { decodeJwt } from "jose"
import { createServer } from "node:http"
import { keyCache } from "../../../sdk/Keys.ts"
import { type VerifiedEvent, verifyEvent } from "../../../sdk/Verify.ts"
import { listenBelow } from "../ChildProtocol.ts"

export interface Arrival {
  readonly text: string
  /** Milliseconds on this process's monotonic clock. */
  readonly at: number
}

/** Records arrivals; `different(n)` resolves when n different messages have come since the last `clear`. */
const noting = () => {
  let noted: Array<Arrival> = []
  let wanted = Infinity
  let enough = () => {}

  const some = (count: number, seconds: number) =>
    new Promise<void>((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`${noted.length} of ${count} arrived in ${seconds} s`)),
        seconds * 1_000,
      )
      wanted = count
      enough = () => {
        clearTimeout(late)
        wanted = Infinity
        resolve()
      }
      if (noted.length >= count) enough()
    })

  return {
    note: (text: string) => {
      noted.push({ text, at: performance.now() })
      if (noted.length >= wanted) enough()
    },
    clear: () => void (noted = []),
    noted: (): ReadonlyArray<Arrival> => noted,
    // A repeated message has the same bytes.
    different: async (count: number, seconds: number) => {
      for (;;) {
        const missing = count - new Set(noted.map(({ text }) => text)).size
        if (missing <= 0) return
        await some(noted.length + missing, seconds)
      }
    },
  }
}

/** A receiver of push on a loopback port. */
export const receiver = async () => {
  const arrivals = noting()
  const port = await listenBelow(createServer((request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (chunk) => text += chunk).once("end", () => {
      arrivals.note(text)
      response.writeHead(202, { "content-length": "0" }).end()
    })
  }))
  return { ...arrivals, port }
}

export const connected = (natsUrl: string): Promise<NatsConnection> => {
  const url = new URL(natsUrl)
  return connect({ servers: url.host, user: url.username, pass: url.password })
}

/** A subscriber of all new messages on LIFECYCLE. */
export const subscriber = async (nc: NatsConnection) => {
  const arrivals = noting()
  const consumer = await jetstream(nc).consumers.get("LIFECYCLE", { deliver_policy: DeliverPolicy.New })
  await consumer.consume({
    max_messages: 1_000,
    callback: (message) => arrivals.note(message.string()),
  })
  return arrivals
}

const ordered = (events: ReadonlyArray<VerifiedEvent>, project: string) =>
  events.forEach(({ epoch, position, prevDigest }, i) => {
    const before = events[i - 1]
    if (before === undefined) return
    if (epoch !== before.epoch || position !== before.position + 1 || prevDigest !== before.digest) {
      throw new Error(`${project}: position ${position} came after ${before.position}`)
    }
  })

/** Fails where a product would refuse a message, or where a project's messages came out of order. */
export const believed = async (
  { baseUrl, issuer, seen }: {
    readonly baseUrl: string
    readonly issuer: string
    readonly seen: ReadonlyArray<Arrival>
  },
) => {
  const served = await (await fetch(new URL("/v1/lifecycle/jwks", baseUrl))).json()
  const keys = keyCache(() => Promise.resolve(served))(served.keys.map(({ kid }: { readonly kid: string }) => kid))
  const histories = Map.groupBy(seen, ({ text }) => String(decodeJwt(text).aud))
  for (const [audience, messages] of histories) {
    const pins = { issuer, audience, keys, now: () => Date.now() / 1_000 }
    const events: Array<VerifiedEvent> = []
    // A repeated message has the same bytes.
    for (const text of new Set(messages.map(({ text }) => text))) events.push(await verifyEvent(text, pins))
    ordered(events, audience)
  }
}
