/** The streams of notifications and of deliveries in a browser whose network goes and comes back. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Page } from "puppeteer-core"
import { freePort } from "../../../../src/embedded/FreePorts.ts"
import { relay, type TcpRelay } from "../../../support/TcpRelay.ts"
import { Chromium, inConsole, press, text } from "./ConsoleBrowser.ts"
import { ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** The network between the browser and the program. */
class Network extends Context.Service<Network, TcpRelay>()("bailiwick/test/http/console/Network") {}

/** Waits for these words in a row of the page's table; the filters above it have them, too. */
const listed = (page: Page, words: string) =>
  Effect.promise(() =>
    page.waitForFunction((words: string) => document.querySelector("tbody")?.innerText.includes(words), {}, words)
  )

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

    it.effect("of deliveries goes on after it, and follows nothing while its switch is off", () =>
      Effect.gen(function* () {
        const network = yield* Network
        const alice = yield* signedIn("Alice")
        const json = { url: "https://hooks.example.com/tail", events: ["email.delivered"] }
        const hook = yield* alice.ask("POST", "/v1/webhooks/", { json, headers: ownPage })
        /** Makes a delivery of an event of this type, beside the network that goes. */
        const sends = Effect.fnUntraced(function* (event: string) {
          const path = `/v1/webhooks/${hook.body.id}/test`
          const sent = yield* alice.ask("POST", path, { json: { event }, headers: ownPage })
          assert.strictEqual(sent.status, 200, sent.text)
        })
        const origin = `http://127.0.0.1:${network.port}`
        const { asked, page } = yield* inConsole("Alice", { origin }, "/console/deliveries")
        yield* text(page, "Live: this page follows what happens.")
        yield* sends("email.opened")
        yield* listed(page, "email.opened")
        network.refuse()
        yield* text(page, "The live stream is cut.")
        yield* sends("email.bounced")
        network.mend()
        yield* listed(page, "email.bounced")
        yield* text(page, "Live: this page follows what happens.")

        yield* press(page, "Live", "label")
        yield* text(page, "This page stays as it is until it is loaded again.")
        const streams = () => asked.filter((one) => new URL(one).pathname.endsWith("/stream")).length
        const before = streams()
        yield* sends("email.clicked")
        yield* press(page, "Live", "label")
        yield* listed(page, "email.clicked")
        assert.strictEqual(streams(), before + 1, "the switch opens one stream")
      }))
  },
)
