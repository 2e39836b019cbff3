/** Fixture of stream tests: receivers that manage, poll and are pushed to, and events appended in bulk. */
import { Effect, Layer, Metric, Queue } from "effect"
import { decodeJwt } from "jose"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { PersonId, type ServiceGrantId } from "../../../schemas/BrandedIds.ts"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { StreamCreation } from "../../../schemas/identity/StreamBodies.ts"
import type { Way } from "../../../services/lifecycle/LatencyMetrics.ts"
import { type Polling, StreamDelivery } from "../../../services/event-streams/StreamDelivery.ts"
import { type RetryPolicy, StreamPush } from "../../../services/event-streams/StreamPush.ts"
import { Streams } from "../../../services/event-streams/Streams.ts"
import { EventLog, type NewLifecycleEvent } from "../../../services/lifecycle/EventLog.ts"
import { genesis } from "../../../services/platform/security/CanonicalJson.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { until } from "../../e2e/support/Until.ts"
import { issuer } from "../../support/TestIdentity.ts"
import { serve } from "../platform/Outbound/LoopbackServers.ts"
import { grant, publicUrl, type Scene, scene, signAll, transmitter } from "../lifecycle/LifecycleFixture.ts"

/** The deadline of a POST to a silent receiver, ms. A slow answer may miss it, and the event is sent again. */
export const shortDeadline = 500

const ground = (timeoutMillis: number) =>
  transmitter.pipe(
    Layer.provideMerge(
      Outbound.layer({ allowedCidrs: ["127.0.0.0/8"], certificateAuthorities: [], timeoutMillis, ownPorts: [] }),
    ),
  )

/** Short retry delays, so that tests wait little; the long lease allows for late renewals on a busy machine. */
const brisk = { leaseMillis: 20_000, firstDelayMillis: 20, maxDelayMillis: 40, warmMillis: 50 }

export const streaming = (options: Partial<RetryPolicy> = {}, deadlineMillis = 60_000) =>
  Layer.mergeAll(
    Streams.layer(publicUrl),
    StreamDelivery.layer(publicUrl),
    StreamPush.layer(publicUrl, { ...brisk, ...options }),
  ).pipe(Layer.provide(RateLimits.layer), Layer.provideMerge(ground(deadlineMillis)))

export interface Receiving extends Scene {
  readonly grantId: ServiceGrantId
  readonly receiver: { readonly issuer: string; readonly clientId: string }
}

/** A receiver that may manage streams of its own project and read it; every event so far is signed. */
export const receiving = Effect.gen(function* () {
  const made = yield* scene
  const clientId = `receiver-${randomUUID()}`
  const grantId = yield* grant(made, clientId, ["stream.manage", "events.read"])
  yield* signAll
  const receiving: Receiving = { ...made, grantId, receiver: { issuer: made.asking.issuer, clientId } }
  return receiving
})

/** Creates a stream of the receiver; returns its id. */
export const stream = Effect.fnUntraced(function* ({ receiver }: Receiving, asked: StreamCreation = {}) {
  const { create } = yield* Streams
  return (yield* create(receiver, asked)).stream_id
})

export const push = (endpoint_url: string, authorization_header?: string): StreamCreation => ({
  delivery: {
    method: "urn:ietf:rfc:8935",
    endpoint_url,
    ...(authorization_header === undefined ? {} : { authorization_header }),
  },
})

/** Appends one event of `kind` about each of these people (subjects of one issuer), and signs them. */
export const tellAll = Effect.fnUntraced(function* (
  { institution: institutionId, project: projectId }: Scene,
  subjects: ReadonlyArray<string>,
  kind: LifecycleEventKind = "session-revoked",
) {
  const { append } = yield* EventLog
  const events = subjects.map((subject): NewLifecycleEvent => ({
    kind,
    projectId,
    institutionId,
    initiatedBy: "system",
    person: { id: PersonId.make(subject), issuer, subject },
  }))
  const ids = yield* run(append(...events))
  yield* signAll
  return ids
})

export interface Sets {
  readonly sets: Readonly<Record<string, string>>
  readonly moreAvailable: boolean
}

/** One poll, without waiting unless `more` says so. */
export const poll = Effect.fnUntraced(function* (
  { receiver }: Pick<Receiving, "receiver">,
  streamId: string,
  more: Partial<Polling> = {},
) {
  const delivery = yield* StreamDelivery
  const asked = { maxEvents: 1_000, waitMillis: 0, ack: [], setErrs: {} }
  return JSON.parse(yield* delivery.poll({ ...receiver, ...asked, ...more, streamId })) as Sets
})

/** Members of a security event token that tests look at. */
export const readSet = (token: string) => {
  const { events, jti, sub_id, ...claims } = decodeJwt<{
    readonly sub_id: { readonly format: string; readonly id?: string; readonly sub?: string }
    readonly events: Readonly<
      Record<string, {
        readonly lifecycle?: { readonly epoch: number; readonly position: number }
        readonly state?: string
        readonly status?: string
        readonly reason?: string
      }>
    >
  }>(token)
  const [[type, event] = ["", {}]] = Object.entries(events)
  return {
    ...claims,
    jti: jti!,
    sub_id,
    type: type.split("/").at(-1)!,
    event,
    position: event.lifecycle?.position ?? null,
  }
}

/** Event ids, and event types, of a poll's answer. */
export const idsIn = ({ sets }: { readonly sets: Readonly<Record<string, string>> }) => Object.keys(sets)
export const typesIn = ({ sets }: { readonly sets: Readonly<Record<string, string>> }) =>
  Object.values(sets).map((token) => readSet(token).type)

export interface Arrival extends ReturnType<typeof readSet> {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly token: string
}

/** A status; a refusal by RFC 8935; a cut connection; or no answer at all. */
export type Answer = number | "reset" | "silence" | { readonly err: string; readonly description?: string }

/** A push receiver: records what arrives; `answer` is called once a request has arrived whole. */
export const pushed = Effect.fnUntraced(function* (
  answer: (arrival: Arrival, nth: number) => Answer | Promise<Answer> = () => 202,
) {
  const arrivals: Array<Arrival> = []
  const heard = yield* Queue.unbounded<Arrival>()
  const reply = (response: ServerResponse, said: Answer) => {
    if (said === "silence") return
    if (said === "reset") response.socket?.destroy()
    else if (typeof said === "number") response.writeHead(said).end()
    else response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(said))
  }
  const { port } = yield* serve((request, response) => {
    let token = ""
    request.on("data", (chunk) => token += chunk)
    request.on("end", () => {
      const arrival = { ...readSet(token), path: request.url!, headers: request.headers, token }
      arrivals.push(arrival)
      void Promise.resolve(answer(arrival, arrivals.length)).then((said) => {
        reply(response, said)
        Queue.offerUnsafe(heard, arrival)
      })
    })
  })
  return { arrivals, heard, url: (path = "/events") => `http://127.0.0.1:${port}${path}` }
})

/** Pushes what is due until the scope ends. */
export const pushing = Effect.gen(function* () {
  const { waiter, turn } = yield* StreamPush
  yield* turn.pipe(
    Effect.flatMap((more) => more ? Effect.void : waiter.wait(20)),
    Effect.forever,
    Effect.forkScoped,
  )
})

/** The row of a stream. */
export const rowOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{
    readonly status: string
    readonly status_by: string
    readonly status_reason: string | null
    readonly epoch: number
    readonly position: bigint
    readonly reached: bigint | null
    readonly attempts: number
    readonly claim: bigint | null
    readonly lease_until: Date | null
    readonly last_error: string | null
    readonly verified_at: Date | null
  }>`select * from lifecycle_streams where id = ${id}::uuid`
  return { ...row!, position: Number(row!.position) }
})

/** Waits until the stream's row satisfies `good`. */
export const seen = (streamId: string, good: (row: Effect.Success<ReturnType<typeof rowOf>>) => boolean) =>
  until("the stream", rowOf(streamId), good)

export const restsAt = (streamId: string, position: number) =>
  seen(streamId, (row) => row.position === position && row.claim === null)

/** The project's head, the receiver's delivered position, and how many delivery times were counted for it. */
export const placesOf = Effect.fnUntraced(function* ({ project, receiver }: Receiving) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ head: bigint; delivered: bigint | null; counted: number }>`
    select h.position as head, c.delivered_position as delivered,
      (select coalesce(sum(n), 0) from unnest(c.to_delivery) n)::int as counted
    from lifecycle_heads h
    left join lifecycle_consumers c on c.project_id = h.project_id
      and c.consumer = ${`${receiver.issuer} ${receiver.clientId}`}
    where h.project_id = ${project}`
  const { counted, delivered, head } = row!
  return { head: Number(head), delivered: delivered === null ? null : Number(delivered), counted }
})

/** How many delivery times this process has measured for this way. */
export const measured = (way: Way) =>
  Effect.map(Metric.snapshot, (all) =>
    all.reduce(
      (sum, metric) =>
        metric.type === "Histogram" && metric.id === "bailiwick_lifecycle_decision_to_delivered_seconds" &&
          metric.attributes?.["way"] === way
          ? sum + metric.state.count
          : sum,
      0,
    ))

/** Begins a new epoch, as after a restore: the project's positions start again. */
export const beginEpoch = Effect.fnUntraced(function* ({ project }: Scene) {
  const { sql } = yield* Database
  yield* sql`update installation set epoch = epoch + 1`
  yield* sql`
    update lifecycle_heads h set epoch = i.epoch, position = 0, digest = ${genesis} from installation i
    where h.project_id = ${project}`
})

export const subjects = (n: number, name = "s") => Array.from({ length: n }, (_, i) => `${name}${i}`)
