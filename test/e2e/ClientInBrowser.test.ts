/** The client in a real browser, against a running program. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { browser, visitor } from "../support/Browser.ts"
import { clientScript } from "../support/ClientPackage.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/ClientInBrowser/Around") {
  static readonly layer = Layer.effect(Around, fixture())
}

layer(Around.layer, { excludeTestServices: true, timeout: "4 minutes" })("the client", (it) => {
  it.effect("runs in a browser", () =>
    Effect.gen(function* () {
      const { account, instance } = yield* Around
      const { key } = yield* account()
      const { page } = yield* visitor(yield* browser)
      const script = new TextDecoder().decode(yield* Effect.promise(clientScript))
      const seen = yield* Effect.promise(async () => {
        // The page's policy lets no script of others in, which this one is.
        await page.setBypassCSP(true)
        await page.goto(`${instance.origin()}/v1/docs`)
        // As text: the test runner would put its own import into a function.
        return page.evaluate(`(async () => {
          const { client, problems } = await import("data:text/javascript,${encodeURIComponent(script)}")
          const api = client({ token: "${key}" })
          const stream = api.notifications()
          const { value } = await stream.next()
          await stream.return()
          const error = await api.post("/v1/api-keys/", { body: {} }).catch((error) => error)
          return [(await api.get("/v1/webhooks/")).length, value.event, error instanceof problems.validation_error]
        })()`)
      })
      assert.deepStrictEqual(seen, [0, "counts", true])
    }))
})
