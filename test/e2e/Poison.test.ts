/** Messages that no publisher should send: each is set aside with its reason or waits, and all others arrive. */
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import { Database } from "../../services/platform/database/Database.ts"
import { mailEvent, subjectOf } from "./support/EventFeed.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { cli } from "./support/ProgramInstance.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { deliveries, hook, totals } from "./support/ProgramWebhooks.ts"
import { accountLine, fixture } from "./support/ProgramFixture.ts"

const sent = "intake.v1.mail-events.sent"

/** Publishes bytes as they are, and waits for the broker's ack. */
const raw = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const { host, password, username } = new URL(url)
        return connect({ servers: host, user: username, pass: password })
      }),
      (connection) => Effect.promise(() => connection.close()),
    ),
    (connection) => (subject: string, data: string | Uint8Array) =>
      Effect.promise(() => jetstream(connection).publish(subject, data)),
  )

const deep = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels))

describe("unusable input", () => {
  it.live(
    "messages are set aside with their reasons, and valid ones are delivered",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase.make
        const around = yield* fixture({}, { database })
        const { sql } = yield* Effect.map(
          Layer.build(Database.layer({ ...database, maxConnections: 2 })),
          Context.get(Database),
        )
        const { api, id } = yield* around.account()
        const target = yield* receiver(around.tls)
        const { id: hookId, path } = yield* hook(api, target, "/sound", ["email.sent"])
        const publish = yield* raw(around.env["NATS_URL"]!)
        const event = (own: object = {}) => ({ ...mailEvent(id, randomUUID(), "email.sent"), ...own })
        const json = (own: object) => JSON.stringify(event(own))
        const metadata = (own: object) => ({ metadata: { subject: "s", tag: null, ...own } })

        const poison: ReadonlyArray<readonly [reason: string, subject: string, data: string | Uint8Array]> = [
          ["invalid_event", sent, json({ id: "a\0b" })],
          ["invalid_event", sent, json({ id: "x".repeat(5_000) })],
          ["invalid_event", sent, json({ id: "" })],
          ["invalid_event", sent, json({ account_id: "*" })],
          ["invalid_event", sent, json({ account_id: ">" })],
          ["invalid_event", sent, json({ email_id: "\u0007" })],
          ["invalid_event", sent, json({ recipient: "x".repeat(321) })],
          ["invalid_event", sent, json({ timestamp: "+275760-09-13T00:00:00.001Z" })],
          ["invalid_event", sent, json({ timestamp: "yesterday" })],
          ["invalid_event", sent, json({ metadata: null })],
          ["invalid_event", sent, "null"],
          ["invalid_event", sent, "[]"],
          ["invalid_event", "intake.v1.mail-events.exploded", json({ event: "email.exploded" })],
          ["wrong_subject", "intake.v1.mail-events.bounced", json({})],
          ["wrong_subject", "intake.v1.mail-events.~", json({})],
          ["too_deep", sent, json(metadata({ deep: deep(31) }))],
          ["too_deep", sent, "[".repeat(60_000)],
          ["too_large", sent, json(metadata({ large: "x".repeat(65_536) }))],
          ["too_large", sent, Buffer.alloc(1_000_000, "[")],
          ["malformed_json", sent, Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xc3, 0x28, 0xff])])],
          ["malformed_json", sent, ""],
          ["malformed_json", sent, "{"],
          ["malformed_json", sent, "\0"],
        ]
        const odd = [
          event({ id: "a.*.>" }),
          event({ id: "../../etc/passwd" }),
          event({ id: "'; drop table events; --" }),
          event({ id: "x".repeat(200) }),
          event({ id: "\ud800 alone", ...metadata({ "\ud800": "\udfff", nul: "a\0b" }) }),
          event(metadata({ deep: deep(29), __proto__: { polluted: true } })),
          event(metadata({ large: "x".repeat(60_000) })),
          event({ email_id: "$JS.API.>", ...metadata({ subject: null }) }),
        ]
        for (const [, subject, data] of poison) {
          yield* publish(subject, data)
          yield* publish(sent, json({}))
        }
        for (const sound of odd) yield* publish(sent, JSON.stringify(sound))
        const count = poison.length + odd.length

        const rejects = sql<{ reason: string; state: string }>`
          select reason, state from intake_rejects where stream = 'EVENTS' order by stream_seq`
        yield* until("sound ones", totals(api, hookId), ({ delivered }) => delivered === count)
        const found = yield* until("rejects", rejects, (rows) => rows.length >= poison.length)
        assert.deepStrictEqual(found.map((row) => row.reason), poison.map(([reason]) => reason))
        assert.isTrue(found.every((row) => row.state === "rejected"))
        assert.deepStrictEqual(target.at(path).filter((arrival) => arrival.fault !== null), [])
        const bodies = target.at(path).map((arrival) => JSON.parse(arrival.body))
        for (const { email_id, event: type, metadata, recipient, timestamp } of odd) {
          const expected = JSON.parse(JSON.stringify({ event: type, email_id, recipient, timestamp, metadata }))
          assert.deepInclude(bodies, expected)
        }
        // Each rejected message can be read back, whatever it holds.
        for (const { id: deliveryId } of yield* deliveries(api, hookId)) {
          const { json, status, text } = yield* api.get(`/v1/webhook-deliveries/${deliveryId}`)
          assert.strictEqual(status, 200, text)
          assert.deepInclude(bodies, json.payload)
        }

        // A directory line whose id cannot be a subject is set aside; the valid one after it is applied.
        const bad = ["a.*", ">", "x".repeat(5_000), "a\0b", ""]
        for (const id of bad) yield* publish("intake.v1.directory.account", accountLine(id))
        const late = randomUUID()
        const early = Array.from({ length: 3 }, () => mailEvent(late, randomUUID(), "email.sent"))
        for (const one of early) yield* publish(subjectOf(one.event), JSON.stringify(one))
        const waiting = sql<{ n: number }>`select count(*)::int as n from intake_rejects where state = 'waiting'`
        yield* until("events that wait", waiting, ([row]) => row!.n === early.length)

        const doctor = yield* cli(around.env, "doctor")
        assert.match(doctor.output, /warn +intake +3 wait for their account, \d+ rejected \(.*invalid_event \d+/)

        // The account comes, without a webhook: its waiting messages are accepted without a delivery, and later ones as
        // usual.
        const other = yield* around.account({ id: late })
        yield* until("nothing waits", waiting, ([row]) => row!.n === 0)
        const { id: lateHook } = yield* hook(other.api, target, "/late", ["email.sent"])
        yield* publish(sent, JSON.stringify(mailEvent(late, early[0]!.id, "email.sent")))
        yield* publish(sent, JSON.stringify(mailEvent(late, "after", "email.sent")))
        yield* until("the late account's", totals(other.api, lateHook), ({ delivered }) => delivered === 1)
        assert.strictEqual((yield* totals(other.api, lateHook)).all, 1)
        const lines = yield* sql<{ n: number }>`
          select count(*)::int as n from intake_rejects where stream = 'DIRECTORY_IN'`
        assert.strictEqual(lines[0]!.n, bad.length)
        assert.strictEqual((yield* totals(api, hookId)).all, count)
      }).pipe(Effect.scoped),
    240_000,
  )
})
