/** The notifications' stream of a browser whose network goes and comes back. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { freePort } from "../../../../src/embedded/FreePorts.ts"
import { relay, type TcpRelay } from "../../../support/TcpRelay.ts"
import { Chromium, inConsole, text } from "./ConsoleBrowser.ts"
import { ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** The network between the browser and the program. */
class Network extends Context.Service<Network, TcpRelay>()("bailiwick/test/http/console/Network") {}

const behindNetwork = Layer.unwrap(Effect.gen(function* () {
  const port = yield* Effect.orDie(freePort())
  const network = yield* relay(new URL(`http://127.0.0.1:${port}`))
  return Layer.merge(
    staged({ PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${network.port}` }),
    Layer.succeed(Network, network),
  )
}))

layer(Layer.merge(behindNetwork, Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "a stream that is cut",
  (it) => {
    it.effect("is resumed, and the page shows what came in between as the API does", () =>
      Effect.gen(function* () {
        const network = yield* Network
        const alice = yield* signedIn("Alice")
        /** Makes a key beside the network that goes; gives what its notification names. */
        const makesKey = Effect.gen(function* () {
          const json = { name: "Newsletter", permissions: ["send"] }
          const made = yield* alice.ask("POST", "/v1/api-keys/", { json, headers: ownPage })
          assert.strictEqual(made.status, 201, made.text)
          return `mail_k_${made.body.key_prefix}`
        })
        const origin = `http://127.0.0.1:${network.port}`
        const { page } = yield* inConsole("Alice", { origin }, "/console/notifications")
        yield* text(page, "1 unread of 1")
        yield* text(page, yield* makesKey)
        network.refuse()
        const meanwhile = yield* makesKey
        network.mend()
        yield* text(page, meanwhile)
        yield* text(page, yield* makesKey)
        const { body } = yield* alice.ask("GET", "/v1/notifications")
        assert.strictEqual(body.total, 4, "the demo made a key, too")
        yield* text(page, `${body.unread} unread of ${body.total}`)
      }))
  },
)
