/** One delivery as the peers and the bare loop make it: the same two HMACs, the same headers, one POST by undici. */
import "../../../src/process/HideAsyncHooks.ts"
import { Agent, request } from "undici"
import { headersFor } from "../../../services/webhooks/Signer.ts"
import type { Hook } from "../../harness/Fixture.ts"

export interface Job {
  readonly id: string
  readonly url: string
  readonly secret: string
  readonly event: string
  readonly body: string
}

export interface Event {
  readonly event: string
  readonly account_id: string
  readonly email_id: string
  readonly recipient: string
  readonly timestamp: string
  readonly metadata: unknown
}

export const inFlight = 64

const dispatcher = new Agent({ connections: inFlight, pipelining: 1 })

/** Every header of a delivery, signed. */
export const headersOf = ({ body, event, id, secret }: Job): Record<string, string> =>
  headersFor({
    deliveryId: id,
    eventType: event,
    attempt: 1,
    timestampSeconds: Math.floor(Date.now() / 1000),
    body,
    secrets: [secret],
  })

/** Fails where the receiver does not answer 2xx. */
export const post = async (job: Job): Promise<void> => {
  const { body, url } = job
  const response = await request(url, { dispatcher, method: "POST", headers: headersOf(job), body })
  await response.body.dump()
  if (response.statusCode >= 300) throw new Error(`answered ${response.statusCode}`)
}

/** The webhooks of an event, from memory: an advantage that a real peer would not have. */
export const listeners = (hooks: ReadonlyArray<Hook>) => {
  const known = new Map(hooks.map((hook) => [`${hook.accountId} ${hook.event}`, hook]))
  return (event: Event): Job => {
    const { secret, url } = known.get(`${event.account_id} ${event.event}`)!
    const { email_id, metadata, recipient, timestamp } = event
    const body = JSON.stringify({ event: event.event, email_id, recipient, timestamp, metadata })
    return { id: crypto.randomUUID(), url, secret, event: event.event, body }
  }
}
