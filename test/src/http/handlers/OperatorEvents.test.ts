import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Queues, WebhookBacklogs } from "../../../../schemas/identity/QueueView.ts"
import { DoctorReport } from "../../../../schemas/identity/DoctorReport.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { bearer, serviceTokenFor } from "../../../support/TestTokens.ts"
import { follow } from "./NotificationServer.ts"
import { send } from "../identity/IdentityClient.ts"

const path = "/v1/operations/stream"

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
})
