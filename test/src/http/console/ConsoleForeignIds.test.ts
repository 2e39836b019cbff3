/**
 * Ids of other people and of what is theirs, in every route of the console that takes an id, and in every GET of the API
 * that the console knows: each is answered as an id that nothing has, and no answer names anything foreign.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Page } from "puppeteer-core"
import { routes } from "../../../../console/contract/RouteTable.ts"
import { access, institution, member, owner, person, project } from "../../../support/TestIdentity.ts"
import { Chromium, heading, inConsole } from "./ConsoleBrowser.ts"
import { ownPage, signedIn, staged } from "./ConsoleStage.ts"

/** A word of every name that the visitor must not learn. */
const secret = "Quillfeather"

/** The console's paths that take an id. */
const screens = [
  ...new Set(
    [
      ...readFileSync(new URL("../../../../console/Screens.tsx", import.meta.url), "utf8").matchAll(
        /path: "([^"]*:[^"]*)"/g,
      ),
    ]
      .map(([, path]) => path!),
  ),
]

/** The paths of the API that are read by an id. */
const reads = Object.values(routes).filter(([method, path]) => method === "GET" && path.includes(":"))
  .map(([, path]) => path)

const filled = (path: string, id: string) => path.replaceAll(/:[a-z_]+/g, id)

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
/** A text without the ids of its request, its time, and the id that it was asked for. */
const blank = (text: string) => text.replaceAll(uuid, "<id>").replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")

/** Loads a page of the console; gives its title and its text, without the id. */
const visited = (page: Page, origin: string, path: string, id: string) =>
  Effect.promise(async () => {
    await page.goto(new URL(filled(path, id), origin).href, { waitUntil: "load" })
    await page.waitForSelector("h1")
    // The notifications' and the operators' streams stay open.
    await page.waitForNetworkIdle({ idleTime: 150, concurrency: 2 })
    const seen = await page.evaluate(() => [document.title, document.body.innerText] as const)
    assert.notInclude(seen.join().toLowerCase(), secret.toLowerCase(), `${path} of ${id}`)
    return seen.map(blank)
  })

/** Asks the API within the page, with the visitor's session. */
const read = (page: Page, path: string) =>
  Effect.promise(() =>
    page.evaluate(async (path: string) => {
      const response = await fetch(path)
      return `${response.status} ${response.headers.get("etag")} ${await response.text()}`
    }, path)
  ).pipe(Effect.map((text) => blank(text)))

const stage = Layer.merge(staged(), Chromium.layer)

layer(stage, { excludeTestServices: true, timeout: "6 minutes" })("foreign ids at the console", (it) => {
  for (
    const [who, path, title] of [["Sam", "/console/requests", "My requests"]] as const
  ) {
    it.effect(`${who} learns nothing of them`, () =>
      Effect.gen(function* () {
        const moss = yield* institution({ name: `${secret} Moss` })
        const mo = yield* person({ display_name: `Mo ${secret}` })
        yield* member(moss, mo, "administrator")
        const site = yield* project(moss, { name: `${secret} Site` })
        yield* owner(site, mo)
        const granted = yield* access(moss, site, mo)
        const alice = yield* signedIn("Alice")
        const json = { url: `https://${secret.toLowerCase()}.example/`, events: ["email.bounced"], description: secret }
        const hook = yield* alice.ask("POST", "/v1/webhooks/", { json, headers: ownPage })
        assert.strictEqual(hook.status, 201, hook.text)
        const tested = yield* alice.ask("POST", `/v1/webhooks/${hook.body.id}/test`, { headers: ownPage })
        assert.strictEqual(tested.status, 200, tested.text)
        const own = yield* alice.ask("GET", `/v1/webhooks/${hook.body.id}`)
        assert.include(own.text, secret, "its owner is told")
        const { body: { items: [delivery] } } = yield* alice.ask("GET", "/v1/webhook-deliveries")
        const foreign: Readonly<Record<string, string>> = {
          mo,
          moss,
          site,
          granted,
          hook: hook.body.id,
          delivery: delivery.id,
        }

        const { origin, page } = yield* inConsole(who, {}, path)
        yield* heading(page, title)
        assert.isAtLeast(screens.length, 6)
        assert.isAtLeast(reads.length, 20)
        const unknown = randomUUID()
        for (const path of screens) {
          const expected = yield* visited(page, origin, path, unknown)
          for (const [what, id] of Object.entries(foreign)) {
            assert.deepStrictEqual(yield* visited(page, origin, path, id), expected, `${path} of ${what}`)
          }
        }
        for (const path of reads) {
          const expected = yield* read(page, filled(path, unknown))
          // The route refuses this kind of visitor before it looks at the id.
          if (expected.startsWith("401 ")) continue
          for (const [what, id] of Object.entries(foreign)) {
            const seen = yield* read(page, filled(path, id))
            assert.strictEqual(seen, expected, `${path} of ${what}`)
          }
        }
      }))
  }
})
