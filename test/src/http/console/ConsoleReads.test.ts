/** What screens say while their reads fail or take long, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import type { HTTPRequest, Page } from "puppeteer-core"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { Chromium, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const screens = [
  ...readFileSync(new URL("../../../../console/Screens.tsx", import.meta.url), "utf8").matchAll(/path: "([^"]*)"/g),
].map(([, path]) => path!)

/** Screens that read nothing beside the session, or nothing before a name is typed. */
const silent = ["/console/welcome", "/console/move-domain"]

/** What each of the API's reads meets, beside the one of the session. */
type Network = (request: HTTPRequest) => unknown

const behind = (page: Page, network: { current: Network }) =>
  Effect.promise(async () => {
    await page.setRequestInterception(true)
    page.on("request", (request) => {
      const { pathname } = new URL(request.url())
      const through = !pathname.startsWith("/v1/") || pathname === "/v1/console/session"
      return through ? void request.continue() : void network.current(request)
    })
  })

const pathOf = (screen: string) =>
  screen.replace(":institution_id", demoIdentityIds.fern).replaceAll(/:[a-z_]+/g, () => randomUUID())

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "6 minutes" })(
  "a read of a screen",
  (it) => {
    it.effect("that fails says so on every screen, and is asked again by a button", () =>
      Effect.gen(function* () {
        const seen = new Set<string>()
        for (
          const [who, of] of [
            ["Carol", (path: string) => !path.includes("/operations/")],
            ["Sam", (path: string) => !path.includes("/operations/")],
            ["Oz", (path: string) => path.includes("/operations/")],
          ] as const
        ) {
          const { open, page } = yield* inConsole(who, {}, "/console/welcome")
          const network: { current: Network } = { current: (request) => request.abort("connectionfailed") }
          yield* behind(page, network)
          for (const screen of screens.filter((one) => of(one) && !silent.includes(one))) {
            yield* open(pathOf(screen))
            const title = yield* Effect.promise(async () => {
              await page.waitForFunction(() =>
                document.querySelector(".failure button") ??
                  (document.querySelector("h1")?.textContent === "There is no such page" || undefined)
              )
              return await page.$eval("h1", ({ textContent }) => textContent)
            })
            if (title === "There is no such page") continue
            seen.add(screen)
            assert.include(
              yield* Effect.promise(() => page.$$eval(".failure button", (all) => all.map((one) => one.textContent))),
              "Try again",
              screen,
            )
          }
        }
        assert.sameMembers([...seen, ...silent], screens)
      }))

    it.effect("that takes long says so, and is asked again by a button", () =>
      Effect.gen(function* () {
        const { open, page } = yield* inConsole("Alice", {}, "/console/welcome")
        const network: { current: Network } = { current: () => {} }
        yield* behind(page, network)
        yield* open("/console/webhooks", "Webhooks")
        yield* text(page, "The answer takes longer than usual.")
        network.current = (request) => request.continue()
        yield* press(page, "Try again")
        yield* text(page, "There is no webhook yet.")
        // Other reads of the page may end after the one that it waits for.
        yield* Effect.promise(() =>
          page.waitForFunction(() => !document.body.innerText.includes("The answer takes longer than usual."))
        )
      }))
  },
)
