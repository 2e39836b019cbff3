/** The sample subscriber of docs/subscribing.md beside a running program, and the document that describes the bus. */
import { assert, layer } from "@effect/vitest"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect, headers } from "@nats-io/transport-node"
import { Ajv } from "ajv"
import { Context, Effect, Layer, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { connected } from "../support/Broker.ts"
import { runtime, start } from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

interface World extends ProgramFixture {
  readonly natsUrl: Redacted.Redacted
}

class Around extends Context.Service<Around, World>()("bailiwick/test/e2e/Subscriber/Around") {
  static readonly layer = Layer.effect(
    Around,
    Effect.gen(function* () {
      const natsUrl = (yield* TestBus.make).url
      return { ...(yield* fixture({}, { natsUrl })), natsUrl }
    }),
  )
}

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("a subscriber of the bus", (it) => {
  it.effect("gets each message once, and each is as the document says", () =>
    Effect.gen(function* () {
      const { account, api, feed, natsUrl } = yield* Around
      const { host, password, username } = new URL(Redacted.value(natsUrl))
      const credential = password === "" ? { token: username } : { user: username, pass: password }
      yield* Effect.promise(async () => {
        const nc = await connect({ servers: host, ...credential })
        const consumers = (await jetstreamManager(nc)).consumers
        await consumers.add("NOTIFICATIONS", { durable_name: "notifications", ack_policy: AckPolicy.Explicit })
        await nc.close()
      })
      const env = {
        NATS_URL: host,
        ...(password === "" ? { NATS_TOKEN: username } : { NATS_USER: username, NATS_PASSWORD: password }),
        STREAM: "NOTIFICATIONS",
        CONSUMER: "notifications",
      }
      const subscriber = yield* start({ command: runtime(), module: "examples/subscriber/main.ts", env })
      yield* subscriber.line(/following NOTIFICATIONS/)
      const { id } = yield* account()
      const notice = { id: randomUUID(), account_id: id, category: "alerts", severity: "info", title: "Full" }
      const asked = JSON.stringify({ ...notice, body: "The mailbox is full.", href: "/" })
      yield* feed.publish("intake.v1.notifications", asked)
      const [line] = yield* subscriber.line(new RegExp(`^notifications\\.v1\\.${id}\\.alerts .*$`, "m"))
      const payload: unknown = JSON.parse(line!.slice(line!.indexOf(" ")))

      const { json: document } = yield* api.get("/v1/asyncapi.json")
      assert.strictEqual(document.asyncapi, "3.0.0")
      const ajv = new Ajv({ strict: false, validateFormats: false })
      ajv.addSchema({ ...document, $id: "bus" })
      const [message] = Object.keys(document.channels.notifications.messages)
      const matches = ajv.compile({ $ref: `bus#/components/messages/notifications.${message}/payload` })
      assert.isTrue(matches(payload), JSON.stringify([payload, matches.errors]))
      assert.isFalse(matches({ ...(payload as object), account_id: 7 }))

      // As the program publishes again what the broker may have lost.
      const subject = `notifications.v1.${id}.alerts`
      yield* connected(natsUrl, async (nc) => {
        const manager = await jetstreamManager(nc)
        const first = await manager.streams.getMessage("NOTIFICATIONS", { last_by_subj: subject })
        const copy = headers()
        copy.set("Bailiwick-Id", first!.header.get("Bailiwick-Id"))
        await jetstream(nc).publish(subject, first!.data, { headers: copy })
      })
      const more = { ...notice, id: randomUUID(), title: "Fuller", body: "The mailbox is fuller.", href: "/" }
      yield* feed.publish("intake.v1.notifications", JSON.stringify(more))
      yield* subscriber.line(/"title":"Fuller"/)
      assert.lengthOf(subscriber.output().match(/"title":"Full"/g)!, 1, "a copy is printed once")
    }))
})
