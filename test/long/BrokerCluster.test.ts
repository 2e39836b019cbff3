/**
 * A cluster of three brokers under load, with TLS and a credentials file. Its leader is killed, moved and cut off, a
 * follower is cut off, another one's files are damaged and deleted: a publisher that repeats what is not acknowledged, and
 * the program, lose nothing, and repeat nothing. Other faults cost nats-server 2.9.10 acknowledged messages
 * (docs/delivery.md, The broker).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { streamNames } from "../../schemas/bus/BusStreams.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { fixture } from "../e2e/support/ProgramFixture.ts"
import { cli } from "../e2e/support/ProgramInstance.ts"
import { until } from "../e2e/support/Until.ts"
import { connected, manage } from "../support/Broker.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { brisk } from "./support/Second.ts"
import { type ClusterMember, threeBrokers } from "./support/ThreeBrokers.ts"
import { close, databaseOf, ended, type Traffic, traffic } from "./support/Traffic.ts"

type Members = ReadonlyArray<ClusterMember>

/** What a member says of EVENTS, or null while it has no answer. */
const events = (member: ClusterMember) =>
  Effect.catchDefect(manage(member.access, (manager) => manager.streams.info("EVENTS")), () => Effect.succeed(null))

/** Waits until EVENTS has a leader and two followers that have everything; returns the leader, and then the others. */
const whole = Effect.fnUntraced(function* (members: Members) {
  const info = yield* until(
    "three copies of EVENTS",
    events(members[0]!),
    (info) =>
      info?.cluster?.leader !== undefined && info.cluster.replicas?.length === 2 &&
      info.cluster.replicas.every(({ current, offline }) => current && offline !== true),
    60,
  )
  const leads = ({ name }: ClusterMember) => name === info!.cluster!.leader
  return [members.find(leads)!, ...members.filter((one) => !leads(one))] as const
})

/** Does something to the cluster while events are published, and waits until the publisher has them all acknowledged. */
const under = Effect.fnUntraced(function* (flow: Traffic, act: Effect.Effect<unknown, unknown, Scope.Scope>) {
  const before = flow.acknowledged.length
  const load = yield* Effect.forkChild(flow.insist(300), { startImmediately: true })
  yield* act
  yield* Fiber.join(load)
  assert.strictEqual(flow.acknowledged.length, before + 300)
})

/** Waits until another member than `old` leads EVENTS, as `at` says. */
const otherLeader = (at: ClusterMember, old: ClusterMember) =>
  until("another leader", events(at), (info) => ![undefined, "", old.name].includes(info?.cluster?.leader), 60)

const killed = Effect.fnUntraced(function* (members: Members, flow: Traffic) {
  const [leader] = yield* whole(members)
  yield* under(flow, leader.kill)
  yield* leader.start
  yield* flow.insist(100)
})

const moved = Effect.fnUntraced(function* (members: Members, flow: Traffic) {
  const [leader, other] = yield* whole(members)
  // While a consumer has no leader yet, no server answers: the request is repeated.
  const stepDown = (of: string) =>
    connected(leader.access, (nc) => nc.request(`$JS.API.${of}`, "", { timeout: 5_000 })).pipe(
      Effect.catchDefect(Effect.fail),
      Effect.retry({ times: 8 }),
    )
  yield* under(flow, Effect.andThen(stepDown("STREAM.LEADER.STEPDOWN.EVENTS"), otherLeader(other!, leader)))
  yield* under(flow, stepDown("CONSUMER.LEADER.STEPDOWN.EVENTS.mail-events"))
})

/** In a partition the majority goes on; who is connected to the one cut off waits until it is back. */
const cutOff = Effect.fnUntraced(function* (members: Members, flow: Traffic) {
  const [leader, follower] = yield* whole(members)
  const silent = until(
    "a follower that is not heard of",
    events(leader),
    (info) => info?.cluster?.replicas?.some(({ active, name }) => name === follower!.name && active > 3e9) === true,
    60,
  )
  yield* under(flow, follower!.isolate.pipe(Effect.andThen(silent), Effect.ensuring(follower!.rejoin)))
  const [first, other] = yield* whole(members)
  yield* under(flow, first.isolate.pipe(Effect.andThen(otherLeader(other!, first)), Effect.ensuring(first.rejoin)))
})

/** A server whose disk was damaged comes back without its files, as docs/delivery.md says, and then has everything again. */
const damaged = Effect.fnUntraced(function* (members: Members, flow: Traffic) {
  const [, follower] = yield* whole(members)
  yield* under(
    flow,
    Effect.gen(function* () {
      yield* follower!.kill
      assert.isAbove(yield* follower!.damage, 0)
      yield* follower!.wipe
      yield* follower!.start
    }),
  )
  const [leader] = yield* whole(members)
  yield* under(flow, leader.kill)
  yield* leader.start
  yield* whole(members)
})

/** How many servers keep each stream; nothing while one of them has no answer. */
const replicasAt = (member: ClusterMember) =>
  Effect.forEach(
    streamNames,
    (name) =>
      manage(member.access, async (manager) => (await manager.streams.info(name)).config.num_replicas).pipe(
        Effect.catchDefect(() => Effect.succeed(null)),
      ),
    { concurrency: "unbounded" },
  )

const run = Effect.gen(function* () {
  const { access, caFile, members } = yield* threeBrokers
  const ready = (member: ClusterMember) =>
    Effect.catchDefect(manage(member.access, (manager) => manager.getAccountInfo()), () => Effect.succeed(null))
  for (const member of members) yield* until("JetStream", ready(member), (info) => info !== null, 60)
  const creds = join(yield* emptyHome, "program.creds")
  writeFileSync(creds, access.creds!, { mode: 0o600 })
  const around = yield* fixture(
    { ...brisk, NATS_CREDS: creds, DENO_CERT: caFile, NODE_EXTRA_CA_CERTS: caFile },
    { natsUrl: access },
  )
  const flow = yield* traffic(around)
  const replicas = replicasAt(members[0]!)
  yield* until("one replica", replicas, (counts) => counts.every((count) => count === 1))
  yield* flow.insist(200)
  // A restart with another number widens the streams, messages and all.
  yield* around.instance.end("SIGTERM")
  yield* around.instance.start({ NATS_REPLICAS: "3" })
  yield* until("three replicas", replicas, (counts) => counts.every((count) => count === 3))
  const took: Record<string, string> = {}
  for (const [name, fault] of Object.entries({ killed, moved, cutOff, damaged })) {
    const from = performance.now()
    yield* fault(members, flow)
    took[name] = `${Math.round((performance.now() - from) / 1_000)} s`
  }
  // Without NATS_REPLICAS, as doctor is here: what an operator widened stays.
  // The server that came back may be behind on other streams for a moment yet.
  const said = /^ok +replicas +3 servers keep each stream$/m
  yield* until(
    "three copies of each stream",
    Effect.delay(cli(around.env, "doctor"), "1 second"),
    ({ output }) => said.test(output),
    60,
  )

  yield* ended(flow)
  yield* Effect.gen(function* () {
    yield* close(flow)
    const { sql } = yield* Database
    const waiting = sql<{ n: number }>`select count(*)::int as n from outbox where published_at is null`
    yield* until("the outbox drained", waiting, ([row]) => row!.n === 0)
    console.log(JSON.stringify({ events: flow.acknowledged.length, posts: flow.target.hits.length, took }))
  }).pipe(Effect.provide(databaseOf(around)))
}).pipe(Effect.scoped)

describe("a cluster of three brokers", () => {
  it.live(
    "widens the streams to three replicas, and loses no event while servers are killed, cut off, moved from and emptied",
    () => run,
  )
})
