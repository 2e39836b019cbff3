/**
 * The program is killed with SIGKILL at each moment of a retry by request and of a cancellation, without an answer to its
 * client. The same request to another process, under the same key, is answered as if nothing had happened: the command
 * was done once, with its audit record and receipt, or not at all.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Database } from "../../services/platform/database/Database.ts"
import type { DecisionFault } from "../../services/platform/Failpoints.ts"
import { api } from "../e2e/support/ApiClient.ts"
import { mailEvent } from "../e2e/support/EventFeed.ts"
import { type Account, fixture, type ProgramFixture } from "../e2e/support/ProgramFixture.ts"
import { deliveries, hook } from "../e2e/support/ProgramWebhooks.ts"
import { receiver } from "../e2e/support/Receiver.ts"
import { until } from "../e2e/support/Until.ts"
import { home, start } from "../support/Processes.ts"
import { databaseOf } from "./support/Traffic.ts"

const points: ReadonlyArray<DecisionFault> = ["decision.opened", "decision.written", "decision.committed"]

/** Asks a program that dies of it. */
const killed = Effect.fnUntraced(function* (
  around: ProgramFixture,
  point: DecisionFault,
  path: string,
  headers: Readonly<Record<string, string>>,
) {
  const doomed = yield* start({
    module: "test/long/support/FaultMain.ts",
    env: {
      ...around.env,
      ROLES: "api",
      BAILIWICK_HOME: yield* home,
      FAULT: `${point}:1`,
      BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
    },
  })
  const [, origin] = yield* doomed.line(/bailiwick ready on (http:\S+)/)
  const asked = api(() => origin!).post(path, undefined, { headers })
  assert.isTrue(Exit.isFailure(yield* Effect.exit(asked)), "no answer")
  assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
}, Effect.scoped)

const commands = [
  { name: "retry", action: "delivery.retried", status: 202, answer: "retrying", end: "delivered", attempts: 2 },
  { name: "cancel", action: "delivery.cancelled", status: 200, answer: "cancelled", end: "cancelled", attempts: 1 },
] as const

/** Commands a program that dies of it, and again one that lives. */
const survived = Effect.fnUntraced(function* (
  around: ProgramFixture,
  { api: client, id, key }: Account,
  { action, answer, attempts, end, name, status }: typeof commands[number],
  point: DecisionFault,
) {
  const { sql } = yield* Database
  const what = `${name} ${point}`
  const path = `/${name}-${point}`
  const target = yield* receiver(around.tls, ({ attempt }) => attempt === 1 ? 500 : 200)
  const own = yield* hook(client, target, path, ["email.delivered"])
  yield* around.feed.events([mailEvent(id, what.replaceAll(/[ .]/g, "-"))])
  const [waiting] = yield* until("the failure", deliveries(client, own.id), ([one]) => one?.status === "retrying")
  const records = Effect.map(
    sql<{ n: number }>`
      select count(*)::int as n from audit_records
      where action = ${action} and subject = ${`delivery:${waiting.id}`}`,
    ([row]) => row!.n,
  )
  const read = Effect.map(client.get(`/v1/webhook-deliveries/${waiting.id}`), ({ json }) => json)
  const command = `/v1/webhook-deliveries/${waiting.id}/${name}`
  const headers = { "idempotency-key": randomUUID() }

  yield* killed(around, point, command, { authorization: `Bearer ${key}`, ...headers })
  const done = point === "decision.committed"
  assert.strictEqual(yield* records, done ? 1 : 0, what)
  if (!done) assert.strictEqual((yield* read).status, "retrying", what)

  for (const replayed of [done, true]) {
    const reply = yield* client.post(command, undefined, { headers })
    assert.deepStrictEqual([reply.status, reply.json], [status, { id: waiting.id, status: answer }], what)
    assert.strictEqual(reply.headers.get("idempotency-replayed"), replayed ? "true" : null, what)
  }
  const ended = yield* until(`the end of ${what}`, read, (one) => one.status === end)
  assert.lengthOf(ended.attempts, attempts, what)
  assert.lengthOf(target.at(path), attempts, what)
  assert.strictEqual(yield* records, 1, what)
})

describe("commands on waiting deliveries, killed", () => {
  it.live("are done once, or not at all", () =>
    Effect.gen(function* () {
      const around = yield* fixture({ WEBHOOKS_RETRY_DELAYS: Array(8).fill("1 hour").join(",") })
      const account = yield* around.account()
      yield* Effect.forEach(commands, (command) =>
        Effect.forEach(points, (point) => survived(around, account, command, point))).pipe(
          Effect.provide(databaseOf(around)),
        )
    }).pipe(Effect.scoped), 600_000)
})
