/** The tail of the bus while the broker is away; what it tells of messages is tested in test/src/http/handlers. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Queue, Redacted, Schema } from "effect"
import { PassedMessages } from "../../../schemas/identity/BusTailView.ts"
import { BusTail } from "../../../services/operations/BusTail.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { TestBus } from "../../support/TestBus.ts"
import { identity, person } from "../../support/TestIdentity.ts"
import { relay, type TcpRelay } from "../../support/TcpRelay.ts"

/** The network between the program and its broker. */
class Network extends Context.Service<Network, TcpRelay>()("bailiwick/test/operations/BusTail/Network") {}

const bus = Layer.unwrap(Effect.gen(function* () {
  const url = new URL(Redacted.value((yield* TestBus.make).url))
  const network = yield* relay(new URL(url))
  url.port = String(network.port)
  return Layer.merge(Bus.layer({ url: Redacted.make(url.href) }), Layer.succeed(Network, network))
}))

const services = BusTail.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Roles.layer, bus)),
  Layer.provideMerge(identity),
)

/** What a stream of the subject tells, from its greeting on. */
const tailing = Effect.fnUntraced(function* (subject: string) {
  const told = yield* Queue.unbounded<string>()
  const outlet = yield* (yield* BusTail).open({
    personId: yield* person({ operator: true }),
    standing: Effect.succeed("admitted"),
    subject,
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => outlet.gone()))
  outlet.attach({
    write: (bytes) => Queue.offerUnsafe(told, new TextDecoder().decode(bytes)),
    end: () => {},
  })
  const until = Effect.fnUntraced(function* (enough: (messages: PassedMessages) => boolean) {
    while (true) {
      const [, data] = /^event: messages\ndata: (.*)$/m.exec(yield* Queue.take(told)) ?? []
      if (data === undefined) continue
      const messages = Schema.decodeUnknownSync(PassedMessages)(JSON.parse(data))
      if (enough(messages)) return messages
    }
  })
  return { told, until }
})

layer(services, { excludeTestServices: true, timeout: "1 minute" })("the tail of the bus", (it) => {
  it.effect("says that the broker is away, and goes on once it is back", () =>
    Effect.gen(function* () {
      const bus = yield* Bus
      const network = yield* Network
      yield* Effect.eventually(bus.heal)
      const { told, until } = yield* tailing("webhooks.v1.attempts.a")
      while (!(yield* Queue.take(told)).includes("event: following")) continue
      network.refuse()
      const away = { items: [], skipped: false, reached: false }
      assert.deepStrictEqual(yield* until(({ reached }) => !reached), away)
      network.mend()
      yield* Effect.eventually(bus.publish("webhooks.v1.attempts.a", `{"n":1}`))
      const { items, reached } = yield* until(({ items }) => items.length > 0)
      assert.isTrue(reached)
      assert.deepStrictEqual(items.map(({ payload }) => payload), [`{"n":1}`])
    }).pipe(Effect.scoped))
})
