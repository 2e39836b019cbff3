import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Queues, WebhookBacklogs } from "../../../../schemas/identity/QueueView.ts"
import { PassedMessages } from "../../../../schemas/identity/BusTailView.ts"
import { DoctorReport } from "../../../../schemas/identity/DoctorReport.ts"
import { Bus } from "../../../../services/platform/messaging/Bus.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { bearer, serviceTokenFor } from "../../../support/TestTokens.ts"
import { follow } from "./NotificationServer.ts"
import { send } from "../identity/IdentityClient.ts"

const path = "/v1/operations/stream"
const tailPath = "/v1/operations/tail"

/** The tail of a subject, from the moment on at which it follows the streams of this subject. */
const tailing = Effect.fnUntraced(function* (headers: Record<string, string>, subject?: string) {
  const reader = yield* follow(headers, undefined, subject === undefined ? tailPath : `${tailPath}?subject=${subject}`)
  const { data, event } = (yield* reader.next) ?? assert.fail("the stream ended")
  assert.strictEqual(event, "following")
  /** What passed until `enough`, and whether something was left out. */
  const passed = Effect.fnUntraced(function* (enough: (items: PassedMessages["items"]) => boolean) {
    let items: PassedMessages["items"] = []
    let skipped = false
    while (!enough(items)) {
      const told = (yield* reader.next) ?? assert.fail("the stream ended")
      const messages = Schema.decodeUnknownSync(PassedMessages)(told.data)
      assert.strictEqual(told.event, "messages")
      assert.isTrue(messages.reached)
      items = [...items, ...messages.items]
      skipped ||= messages.skipped
    }
    return { items, skipped }
  })
  return { ...reader, data: data as unknown, passed }
})

/** A stream, and the first event of each subject. */
const followed = Effect.fnUntraced(function* (headers: Record<string, string>) {
  const reader = yield* follow(headers, undefined, path)
  const events = new Map<string, unknown>()
  while (reader.status === 200 && events.size < 4) {
    const { data, event } = (yield* reader.next) ?? assert.fail("the stream ended")
    if (!events.has(event)) events.set(event, data)
  }
  return { ...reader, events }
})

layer(management(), { excludeTestServices: true, timeout: "30 seconds" })("GET /v1/operations/stream", (it) => {
  it.effect("tells an operator queues, backlogs, dead letters and findings, as the lists have them", () =>
    Effect.gen(function* () {
      const { cut, events, headers } = yield* followed(yield* bearer(yield* person({ operator: true })))
      assert.strictEqual(headers["content-type"], "text/event-stream")
      assert.strictEqual(headers["cache-control"], "no-store, no-transform")
      Schema.decodeUnknownSync(Queues)(events.get("queues"))
      Schema.decodeUnknownSync(WebhookBacklogs)(events.get("backlogs"))
      Schema.decodeUnknownSync(DoctorReport)(events.get("findings"))
      assert.deepStrictEqual(events.get("dead-letters"), { count: 0, capped: false, newest: null })
      yield* cut
    }))

  it.effect("a person has ten at most, and one that left makes room", () =>
    Effect.gen(function* () {
      const headers = yield* bearer(yield* person({ operator: true }))
      const streams = yield* Effect.forEach(Array.from({ length: 10 }), () => followed(headers))
      const refused = yield* send("GET", path, headers)
      assert.deepStrictEqual(codeOf(refused), [429, "rate_limited"])
      assert.strictEqual(refused.headers["retry-after"], "30")
      yield* streams[0]!.cut
      const again = yield* Effect.repeat(followed(headers), { until: ({ status }) => status === 200 })
      for (const { cut } of [...streams, again]) yield* cut
    }))

  it.effect("is for operators alone", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(codeOf(yield* send("GET", path)), [401, "invalid_token"])
      assert.deepStrictEqual(codeOf(yield* send("GET", path, yield* bearer(yield* person()))), [403, "role_required"])
      const service = { authorization: `Bearer ${yield* serviceTokenFor("unknown-service")}` }
      assert.deepStrictEqual(codeOf(yield* send("GET", path, service)), [403, "role_required"])
    }))

  it.effect("the tail tells which messages pass, of one subject or all, and no payload that is somebody's own", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      yield* Effect.eventually(bus.heal)
      const headers = yield* bearer(yield* person({ operator: true }))
      const [webhooks, all] = [yield* tailing(headers, "webhooks.v1.*.a"), yield* tailing(headers)]
      assert.deepStrictEqual(webhooks.data, {
        subject: "webhooks.v1.*.a",
        streams: ["DELIVERIES", "RESULTS", "DEAD_LETTERS"],
      })
      yield* bus.publish("webhooks.v1.attempts.b", "{}")
      yield* bus.publish("notifications.v1.acme.domain", `{"title":"for Acme alone"}`)
      yield* bus.publish("webhooks.v1.dead.a", `{"long":"${"x".repeat(3_000)}"}`)
      const own = yield* webhooks.passed((items) => items.length > 0)
      assert.deepStrictEqual(own.items.map(({ subject }) => subject), ["webhooks.v1.dead.a"])
      assert.deepInclude(own.items[0], { stream: "DEAD_LETTERS", seq: 1, bytes: 3_011, cut: true })
      assert.strictEqual(own.items[0]!.payload, `{"long":"${"x".repeat(1_991)}`)
      const every = yield* all.passed((items) => items.some(({ subject }) => subject === "webhooks.v1.dead.a"))
      const notice = every.items.find(({ stream }) => stream === "NOTIFICATIONS")
      assert.deepInclude(notice, { subject: "notifications.v1.acme.domain", bytes: 26, payload: null, cut: false })
      yield* webhooks.cut
      yield* all.cut
    }))

  it.effect("the tail leaves out what passes faster than it looks, and says so", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const tail = yield* tailing(yield* bearer(yield* person({ operator: true })), "webhooks.v1.attempts.many")
      const subject = "webhooks.v1.attempts.many"
      yield* bus.publishAll(Array.from({ length: 300 }, (_, n) => ({ subject, data: `{"n":${n}}` })))
      const burst = yield* tail.passed((items) => items.length >= 50)
      assert.isTrue(burst.skipped)
      assert.isBelow(burst.items.length, 300)
      yield* bus.publish(subject, `{"n":"last"}`)
      const after = yield* tail.passed((items) => items.some(({ payload }) => payload === `{"n":"last"}`))
      assert.isBelow(after.items.length, 250)
      yield* tail.cut
    }))

  it.effect("the tail is for operators alone, three streams each, of subjects that a stream takes", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(codeOf(yield* send("GET", tailPath)), [401, "invalid_token"])
      assert.deepStrictEqual(codeOf(yield* send("GET", tailPath, yield* bearer(yield* person()))), [
        403,
        "role_required",
      ])
      const headers = yield* bearer(yield* person({ operator: true }))
      for (const subject of ["elsewhere.v1", "webhooks..dead", "webhooks.v1.de ad", "", ">.webhooks"]) {
        assert.strictEqual(
          (yield* send("GET", `${tailPath}?subject=${encodeURIComponent(subject)}`, headers)).status,
          422,
        )
      }
      const streams = yield* Effect.forEach([1, 2, 3], () => tailing(headers, "transfers.v1.>"))
      assert.deepStrictEqual(codeOf(yield* send("GET", tailPath, headers)), [429, "rate_limited"])
      for (const { cut } of streams) yield* cut
    }))
})
