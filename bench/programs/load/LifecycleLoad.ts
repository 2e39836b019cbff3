/**
 * Decides at a steady rate, as the program's own transitions do: each decision is a transaction that appends one event
 * through `EventLog`. It receives the same events, by JetStream and by push, so that one clock measures from the
 * return of COMMIT to the arrival. As the yardstick it publishes and POSTs each event itself, unsigned, right after its
 * commit.
 *
 * Orders are lines of JSON: `open` connects to a fixture, `play` decides.
 */
import "../../../src/process/HideAsyncHooks.ts"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Layer, ManagedRuntime, Redacted, References, Result } from "effect"
import { decodeJwt } from "jose"
import process from "node:process"
import { createInterface } from "node:readline"
import { Agent, request } from "undici"
import { EventLog, type NewLifecycleEvent } from "../../../services/lifecycle/EventLog.ts"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { publishOn } from "../../../services/platform/messaging/Bus/Publisher.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { lived } from "../../harness/LifecycleSeed.ts"
import { type Arrival, believed, connected, receiver, subscriber } from "./Arrivals.ts"
import { say } from "../ChildProtocol.ts"

export interface Open {
  readonly order: "open"
  readonly databaseUrl: string
  readonly ownerUrl: string
  readonly natsUrl: string
  /** Whether this process is the transmitter, too: the yardstick. */
  readonly bare: boolean
}

export interface Play {
  readonly order: "play"
  /** Number of the first event of each project, new in each order; over how many projects; how many events in all. */
  readonly from: number
  readonly projects: number
  readonly count: number
  /** A second. */
  readonly rate: number
  readonly pushed: boolean
  /** The address of the keys, and `iss`, to verify arrivals. Null: the arrivals are the yardstick's. */
  readonly verify: { readonly baseUrl: string; readonly issuer: string } | null
}

export interface Played {
  readonly fault: string | null
  /** Milliseconds, ascending. */
  readonly jetstream: ReadonlyArray<number>
  readonly push: ReadonlyArray<number>
  /** Stages on the way, by the program's own rows: until the signature, and until the broker's acknowledgement. */
  readonly signed: ReadonlyArray<number>
  readonly published: ReadonlyArray<number>
  /** Decisions committed a second. */
  readonly rate: number
}

type Order = Open | Play

const pushes = await receiver()
const dispatcher = new Agent({ connections: 64, pipelining: 1 })

const post = async (body: string) => {
  const headers = { "content-type": "application/secevent+jwt" }
  const response = await request(`http://127.0.0.1:${pushes.port}/`, { dispatcher, method: "POST", headers, body })
  await response.body.dump()
  if (response.statusCode !== 202) throw new Error(`answered ${response.statusCode}`)
}

const publish = async (nc: NatsConnection, { kind, projectId }: NewLifecycleEvent, data: string) => {
  const outcome = await publishOn(nc, { subject: `lifecycle.v1.${projectId}.${kind}`, data }, 10_000)
  if (Result.isFailure(outcome)) throw new Error(outcome.failure.detail)
}

const numberOf = (bare: boolean) => ({ text }: Arrival): string =>
  bare ? JSON.parse(text).jti : String(decodeJwt(text).jti)

const opened = async ({ bare, databaseUrl, natsUrl, ownerUrl }: Open) => {
  const runtime = ManagedRuntime.make(EventLog.layer.pipe(
    Layer.provide(WakeUps.layer),
    Layer.provideMerge(Bus.layer({ url: Redacted.make(natsUrl) })),
    Layer.provideMerge(Database.layer({
      url: Redacted.make(databaseUrl),
      ownerUrl: Redacted.make(ownerUrl),
      maxConnections: 16,
    })),
    // As in the program without a collector.
    Layer.provideMerge(Layer.succeed(References.TracerEnabled, false)),
  ))
  const nc = await connected(natsUrl)
  const stream = await subscriber(nc)
  let committed = new Map<string, number>()

  const decide = (fact: NewLifecycleEvent) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const eventLog = yield* EventLog
      return yield* runOnce(Effect.gen(function* () {
        const [id] = yield* eventLog.append(fact)
        yield* sql.afterCommit(Effect.sync(() => void committed.set(id!, performance.now())))
        return id!
      }))
    })

  const decided = async (fact: NewLifecycleEvent, pushed: boolean) => {
    const jti = await runtime.runPromise(decide(fact))
    if (!bare) return
    const text = JSON.stringify({ jti, ...fact })
    await Promise.all([publish(nc, fact, text), pushed ? post(text) : null])
  }

  const times = (ids: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      return yield* sql<{ id: string; signed: Date; published: Date }>`
        select o.id::text as id, m.signed_at as signed, o.published_at as published
        from unnest(${ids}::uuid[]) wanted(id) join lifecycle_messages m on m.event_id = wanted.id
        join outbox o on o.id = m.event_id where o.published_at is not null`
    })

  const play = async ({ count, from, projects, pushed, rate, verify }: Play): Promise<Played> => {
    committed = new Map()
    const ways = pushed ? { jetstream: stream, push: pushes } : { jetstream: stream }
    for (const way of [stream, pushes]) way.clear()
    const decisions: Array<Promise<void>> = []
    const start = performance.now()
    await new Promise<void>((resolve) => {
      const tick = setInterval(() => {
        const due = Math.min(count, Math.floor((performance.now() - start) * rate / 1_000) + 1)
        for (let n = decisions.length; n < due; n++) {
          decisions.push(decided(lived(n % projects, from + Math.floor(n / projects)), pushed))
        }
        if (decisions.length < count) return
        clearInterval(tick)
        resolve()
      }, 1)
    })
    await Promise.all(decisions)
    const seconds = (performance.now() - start) / 1_000
    await Promise.all(Object.values(ways).map((way) => way.different(count, 60)))
    const latencies = (arrivals: ReadonlyArray<Arrival>) => {
      const first = new Map(arrivals.toReversed().map((arrival) => [numberOf(bare)(arrival), arrival.at]))
      if (first.size !== count) throw new Error(`${first.size} different messages of ${count}`)
      return [...first].map(([id, at]) => Number((at - committed.get(id)!).toFixed(2))).sort((a, b) => a - b)
    }
    const written = bare ? [] : await runtime.runPromise(times([...committed.keys()]))
    const until = (pick: (row: (typeof written)[number]) => Date) =>
      written.map((row) => pick(row).getTime() - performance.timeOrigin - committed.get(row.id)!).sort((a, b) => a - b)
    const played = {
      fault: null,
      signed: until(({ signed }) => signed),
      published: until(({ published }) => published),
      jetstream: latencies(stream.noted()),
      push: pushed ? latencies(pushes.noted()) : [],
      rate: count / seconds,
    }
    if (verify !== null) { for (const way of Object.values(ways)) await believed({ ...verify, seen: way.noted() }) }
    return played
  }

  return { play }
}

let fixture: Awaited<ReturnType<typeof opened>> | null = null

const obey = async (order: Order) => {
  if (order.order === "open") {
    fixture = await opened(order)
    say("opened", {})
  } else {
    say("played", { ...await fixture!.play(order) })
  }
}

const failed = (error: unknown) =>
  say("played", { fault: String(error), jetstream: [], push: [], signed: [], published: [], rate: 0 } satisfies Played)

createInterface({ input: process.stdin }).on("line", (line) => void obey(JSON.parse(line)).catch(failed))
  .on("close", () => process.exit(0))
say("ready", { port: pushes.port })
