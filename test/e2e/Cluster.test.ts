/** Two processes with CLUSTER=on, from outside: a command may be sent to either, and one of them may leave. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "node:net"
import { Database } from "../../services/platform/database/Database.ts"
import { databaseOf } from "../long/support/Traffic.ts"
import { second } from "../long/support/Second.ts"
import { addressOf, owner, shared, unanswered } from "./ClusterFixture.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"
import { until } from "./support/Until.ts"

/** Opens 300 connections to the port of the one process that is left, and waits until it has closed 44 of them. */
const crowded = Effect.fnUntraced(function* (fixture: ProgramFixture) {
  const [runner] = yield* Effect.flatMap(Database, ({ owner }) =>
    owner<{ address: string }>`
    select address from cluster_runners`).pipe(Effect.provide(databaseOf(fixture)), Effect.orDie)
  const [host, port] = runner!.address.split(":")
  let closed = 0
  const sockets = Array.from(
    { length: 300 },
    () => connect(Number(port), host).on("error", () => {}).once("close", () => closed++).resume(),
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => socket.destroy())))
  yield* until("connections beyond the limit to be closed", Effect.sync(() => closed), (n) => n >= 44)
})

describe("two processes that share actors", () => {
  it.live(
    "execute the steps of one transfer in turns with the same answers, and one goes on when the other ends",
    () =>
      Effect.gen(function* () {
        const around = yield* fixture({ CLUSTER: "on", INITIATE_TRANSFER_RATE: "1000" })
        const other = yield* second(around)
        yield* shared(around, 2)
        const [from, to] = yield* Effect.all([owner(around, 8), owner(around, 0)], { concurrency: 2 })
        const [source, recipient] = [from.at(around.instance), to.at(other)]
        // Eight domains lie on both processes' shards with all but certainty.
        for (const id of from.domains) {
          const offered = yield* source.post(`/v1/domains/${id}/transfer`, {
            target_email: addressOf(to.id),
            note: "für dich",
          })
          assert.strictEqual(offered.status, 200, offered.text)
          const again = yield* from.at(other).post(`/v1/domains/${id}/transfer`, { target_email: addressOf(to.id) })
          assert.deepStrictEqual([again.status, again.json.code], [409, "transfer_active"])
          const accepted = yield* recipient.post(`/v1/domain-transfers/by-id/${offered.json.id}/accept`, {})
          assert.deepInclude(accepted.json, { status: "accepted", target_org_id: to.workspaceId, note: "für dich" })
          const late = yield* source.delete(`/v1/domain-transfers/${offered.json.id}`)
          assert.deepStrictEqual([late.status, late.json.code], [409, "not_pending"])
        }
        // Commands would succeed without actors as well: most of the 32 must have gone through them, even on a starved
        // machine.
        assert.isBelow(unanswered(around.instance) + unanswered(other), 8)

        const hook = (yield* source.post("/v1/webhooks/", { url: "https://example.com/", events: ["email.sent"] })).json
        const secrets = new Set([hook.secret])
        for (const api of [source, from.at(other)]) {
          const rotated = yield* api.post(`/v1/webhooks/${hook.id}/rotate-secret`, {})
          assert.strictEqual(rotated.status, 200, rotated.text)
          secrets.add(rotated.json.secret)
          const wrong = yield* api.patch(`/v1/webhooks/${hook.id}`, { url: "https://10.0.0.1/" })
          assert.strictEqual(wrong.json.detail[0].loc.join("."), "body.url")
        }
        assert.strictEqual(secrets.size, 3)

        yield* other.end("SIGTERM")
        yield* shared(around, 1)
        const left = yield* Effect.forEach(
          from.domains,
          (id) => source.post(`/v1/domains/${id}/transfer`, { target_email: addressOf(to.id) }),
          { concurrency: 8 },
        )
        assert.deepStrictEqual(
          left.map(({ json }) => json.code),
          from.domains.map(() => "transfer_active"),
        )
        yield* crowded(around)
        assert.strictEqual((yield* source.get("/v1/webhooks/")).status, 200)
      }).pipe(Effect.scoped),
    240_000,
  )
})
