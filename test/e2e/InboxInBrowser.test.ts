/** `<bailiwick-inbox>` in a real browser, on a page of another server that passes its requests on to a running program. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { Page } from "puppeteer-core"
import { everyLook, sound } from "../src/http/console/ConsoleBrowser.ts"
import { browser, visitor } from "../support/Browser.ts"
import { api } from "./support/ApiClient.ts"
import { accountLine, fixture, type ProgramFixture } from "./support/ProgramFixture.ts"
import { inboxSnippets } from "../support/InboxPackage.ts"
import { inboxSite } from "./support/InboxSite.ts"
import { until } from "./support/Until.ts"

class Around extends Context.Service<Around, ProgramFixture>()("bailiwick/test/e2e/InboxInBrowser/Around") {
  static readonly layer = Layer.effect(Around, fixture())
}

/** An expression about the element `inbox`, its shadow root, the texts of what a selector finds, and what is focused. */
const about = (expression: string) =>
  `(() => {
    const inbox = document.querySelector("bailiwick-inbox"), root = inbox?.shadowRoot
    const seen = (one) => one.checkVisibility({ visibilityProperty: true })
    const texts = (selector) => [...root?.querySelectorAll(selector) ?? []].filter(seen).map((one) => one.textContent)
    const focused = () => root?.activeElement
    return ${expression}
  })()`

/** The panel has come in: before, its colours are mixed with those behind it. */
const still = `root.querySelector(".panel").getAnimations().length === 0`

const look = (page: Page, expression: string) => Effect.promise(() => page.evaluate(about(expression)))
const wait = (page: Page, expression: string) =>
  Effect.promise(() =>
    page.waitForFunction(about(expression)).catch(async () =>
      assert.fail(`never: ${expression}; it shows ${await page.evaluate(about("root?.textContent"))}`)
    )
  ).pipe(Effect.asVoid)
const press = (page: Page, selector: string) =>
  Effect.promise(() => page.locator(`bailiwick-inbox >>> ${selector}`).click())
const key = (page: Page, ...names: ReadonlyArray<Parameters<Page["keyboard"]["press"]>[0]>) =>
  Effect.promise(async () => {
    for (const name of names) await page.keyboard.press(name)
  })

/** An account, and a browser at its page. */
const visiting = Effect.gen(function* () {
  const { account, feed, instance } = yield* Around
  const site = yield* inboxSite(instance.origin)
  const own = yield* account()
  site.signIn({ authorization: `Bearer ${own.key}` })
  const visit = yield* visitor(yield* browser)
  const { page } = visit
  const asked: Array<string> = []
  page.on("request", (request) => request.url().startsWith("data:") || asked.push(request.url()))
  const open = (path: string) => Effect.promise(() => page.goto(site.origin + path)).pipe(Effect.asVoid)
  /** A notification of any publisher. */
  const notify = (title: string, fields: object = {}) =>
    feed.publish(
      "intake.v1.notifications",
      JSON.stringify({
        id: randomUUID(),
        account_id: own.id,
        category: "team",
        severity: "info",
        title,
        body: `Text of ${title}`,
        href: "/inside",
        ...fields,
      }),
    )
  const list = Effect.map(own.api.get("/v1/notifications?limit=200"), ({ json }) => json)
  const arrived = (total: number) => until("notifications", list, (json) => json.total === total)
  return { ...visit, asked, origin: site.origin, open, site, notify, list, arrived, account: own }
})

layer(Around.layer, { excludeTestServices: true, timeout: "4 minutes" })("<bailiwick-inbox>", (it) => {
  it.effect("takes the looks that the README's stylesheet gives it", () =>
    Effect.gen(function* () {
      const { open, page } = yield* visiting
      const of = (selector: string, property: string) =>
        `getComputedStyle(root.querySelector("${selector}")).${property}`
      yield* open("/")
      yield* wait(page, `root?.querySelector(".badge") != null && root.querySelector(".panel") != null`)
      const before = yield* look(page, `[${of(".badge", "fontWeight")}, ${of(".panel", "borderTopLeftRadius")}]`)
      yield* Effect.promise(() =>
        page.evaluate((css) => {
          const sheet = new CSSStyleSheet()
          sheet.replaceSync(css)
          document.adoptedStyleSheets = [sheet]
        }, inboxSnippets("css")[0]!)
      )
      const after = yield* look(page, `[${of(".badge", "fontWeight")}, ${of(".panel", "borderTopLeftRadius")}]`)
      assert.notDeepEqual(before, ["400", "4px"])
      assert.deepStrictEqual(after, ["400", "4px"])
    }))

  it.effect("shows all pages, marks one and all, under a strict policy, by keyboard, in every look", () =>
    Effect.gen(function* () {
      const at = yield* visiting
      const { account, arrived, list, notify, page } = at
      for (let n = 1; n <= 42; n++) yield* notify(`Note ${n}`)
      const script = `<img src=x onerror="document.title='taken'">`
      yield* notify("Severe", { severity: "critical", title: script })
      yield* arrived(44)
      yield* at.open("/")
      yield* wait(page, `texts(".badge")[0] === "44"`)
      yield* sound(at, "inbox, closed")
      assert.strictEqual(yield* look(page, `root.querySelector(".bell").ariaLabel`), "Notifications, 44 unread")

      yield* key(page, "Tab", "Enter")
      yield* wait(page, `texts("li").length === 20 && focused()?.className === "panel"`)
      yield* wait(page, still)
      const titles = ((yield* list).items as ReadonlyArray<{ readonly title: string }>).map(({ title }) => title)
      assert.deepStrictEqual(yield* look(page, `texts(".title")`), titles.slice(0, 20))
      assert.include(titles.slice(0, 20), script)
      yield* everyLook(at, "inbox")

      yield* press(page, ".more")
      yield* wait(page, `texts("li").length === 40`)
      yield* wait(page, `focused()?.textContent === ${JSON.stringify(titles[20])}`)
      yield* key(page, "ArrowDown", "ArrowDown")
      assert.strictEqual(yield* look(page, "focused().textContent"), titles[22])
      yield* key(page, "Home", "ArrowUp", "End")
      assert.strictEqual(yield* look(page, "focused().textContent"), titles[39])
      yield* press(page, ".more")
      yield* wait(page, `texts("li").length === 44 && texts(".more").length === 0`)
      assert.deepStrictEqual(yield* look(page, `texts(".title")`), titles)

      // The button goes, and the focus stays with its notification.
      yield* key(page, "Home", "Tab", "Enter")
      yield* wait(page, `texts(".badge")[0] === "43" && texts("li.unread").length === 43`)
      assert.strictEqual(yield* look(page, "focused().textContent"), titles[0])
      assert.isNotNull((yield* list).items[0].read_at)
      yield* press(page, ".mark-all")
      yield* wait(page, `texts(".badge").length === 0 && texts("li.unread").length === 0`)
      yield* wait(page, `root.querySelector(".said").textContent === "All notifications are read."`)
      assert.strictEqual((yield* list).unread, 0)
      yield* sound(at, "inbox, all read")

      yield* key(page, "Escape")
      yield* wait(page, `texts("li").length === 0 && focused()?.className === "bell"`)
      assert.strictEqual(yield* Effect.promise(() => page.title()), "A product")
      assert.strictEqual((yield* account.api.get("/v1/notifications")).json.total, 44)
    }))

  it.effect("follows the stream, says what comes, and resumes where it was", () =>
    Effect.gen(function* () {
      const { notify, open, page, site } = yield* visiting
      yield* open("/")
      yield* wait(page, `texts(".badge")[0] === "1"`)
      yield* Effect.promise(() =>
        page.evaluate(`globalThis.told = []
          for (const name of ["unread", "notification"]) addEventListener("bailiwick-" + name, ({ detail }) => {
            told.push(detail.title ?? detail.unread)
          })`)
      )
      yield* press(page, ".bell")
      yield* notify("First")
      yield* wait(page, `texts(".title")[0] === "First" && texts(".badge")[0] === "2"`)
      yield* wait(page, `root.querySelector(".said").textContent === "New notification: First"`)
      yield* wait(page, `told.includes("First") && told.includes(2)`)

      const lists = () => site.passed.filter(({ path }) => path.startsWith("/v1/notifications?")).length
      const before = lists()
      site.refuse()
      yield* wait(page, `texts(".notice").join().startsWith("The server does not answer")`)
      assert.include(yield* look(page, `texts(".title")`), "First")
      yield* notify("Meanwhile")
      site.mend()
      yield* wait(page, `texts(".title")[0] === "Meanwhile" && texts(".notice").length === 0`)
      assert.match(site.passed.at(-1)!.lastEventId ?? "", /^\w+\.\d+$/)

      // A page that is not seen holds no stream; it resumes, too.
      const show = (state: string) =>
        page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true })
          document.dispatchEvent(new Event("visibilitychange"))`)
      yield* Effect.promise(() => show("hidden"))
      yield* notify("Unseen")
      const streams = site.passed.length
      yield* Effect.promise(() => show("visible"))
      yield* wait(page, `texts(".title")[0] === "Unseen"`)
      assert.strictEqual(site.passed.length, streams + 1)
      assert.match(site.passed.at(-1)!.lastEventId ?? "", /^\w+\.\d+$/)
      assert.deepStrictEqual(yield* look(page, `texts(".title").slice(0, 3)`), ["Unseen", "Meanwhile", "First"])
      assert.strictEqual(lists(), before)
    }))

  it.effect("says that it loads, that there is none, that it was refused, and begins again", () =>
    Effect.gen(function* () {
      const { cookie, feed, instance } = yield* Around
      const at = yield* visiting
      const { account, open, page, site } = at
      site.hold()
      yield* open("/")
      yield* press(page, ".bell")
      yield* wait(page, `texts(".notice")[0] === "Loading…" && root.querySelector(".panel").ariaBusy === "true"`)
      yield* wait(page, still)
      yield* sound(at, "inbox, loading")
      site.signIn({ authorization: "Bearer mail_k_none" })
      site.mend()
      yield* wait(page, `texts(".notice")[0] === "Sign in to see your notifications." && texts(".retry").length === 1`)
      assert.strictEqual(yield* look(page, `root.querySelector(".panel").ariaBusy`), "false")
      const newcomer = randomUUID()
      yield* feed.publish("intake.v1.directory.account", accountLine(newcomer))
      const session = yield* cookie(newcomer)
      yield* until("the account", api(instance.origin, session).get("/v1/account"), ({ status }) => status === 200)
      site.signIn(session)
      yield* press(page, ".retry")
      yield* wait(page, `texts(".notice")[0] === "No notifications."`)

      // The element undoes a change that the API refuses, and says so.
      yield* press(page, ".settings-button")
      yield* wait(page, `texts("fieldset").length === 4 && texts(".notice").length === 0`)
      site.signIn({ authorization: "Bearer mail_k_none" })
      yield* press(page, "input")
      yield* wait(page, `texts("[role=alert]").length === 1 && root.querySelector("input").checked`)
      site.signIn({ authorization: `Bearer ${account.key}` })
      yield* press(page, "input")
      yield* wait(page, `texts("[role=alert]").length === 0 && !root.querySelector("input").checked`)
      const { json } = yield* until(
        "the preference",
        account.api.get("/v1/notifications/preferences"),
        ({ json }) => !json.preferences.alerts.web,
      )
      assert.isTrue(json.preferences.alerts.email)
    }))

  it.effect("takes words, a fetch and handlers of the page, in place or behind the bell", () =>
    Effect.gen(function* () {
      const at = yield* visiting
      const { account, asked, list, notify, open, page } = at
      yield* notify("A link")
      yield* at.arrived(2)
      yield* open("/bare")
      yield* Effect.promise(() =>
        page.evaluate(`(() => {
          globalThis.calls = []
          globalThis.followed = []
          const inbox = document.createElement("bailiwick-inbox")
          inbox.setAttribute("base", "/elsewhere/")
          inbox.toggleAttribute("inline", true)
          inbox.words = { notifications: "Mitteilungen" }
          inbox.fetch = (input, init) => {
            calls.push([init.method, init.credentials])
            return fetch(String(input).replace("/elsewhere", "/api"), init)
          }
          addEventListener("bailiwick-open", (event) => {
            event.preventDefault()
            followed.push(event.detail.href)
          })
          document.querySelector("main").append(inbox)
        })()`)
      )
      yield* wait(page, `texts("h2")[0] === "Mitteilungen" && texts("li").length === 2 && texts(".bell").length === 0`)
      yield* everyLook(at, "inbox, inline")
      yield* press(page, ".title")
      yield* wait(page, `texts("li.unread").length === 1 && followed[0] === "/inside"`)
      assert.deepInclude((yield* look(page, "calls")) as ReadonlyArray<unknown>, ["POST", "same-origin"])
      assert.strictEqual((yield* list).unread, 1)
      assert.isFalse(asked.some((url) => url.includes("/inside")))
      assert.strictEqual(yield* look(page, "inbox.unread + inbox.total"), 3)

      yield* press(page, ".settings-button")
      yield* wait(page, `texts("fieldset").length === 4`)
      yield* everyLook(at, "inbox, settings")

      // Taken out and put back it is one element still, and one stream.
      yield* Effect.promise(() =>
        page.evaluate(`document.querySelector("h1").after(document.querySelector("bailiwick-inbox"))`)
      )
      yield* notify("Later")
      yield* wait(page, `root.querySelector(".title").textContent === "Later"`)

      // Without a handler the page goes to the link, and the notification is marked as read all the same.
      yield* open("/")
      yield* press(page, ".bell")
      yield* Effect.promise(() =>
        Promise.all([page.waitForNavigation(), page.locator("bailiwick-inbox >>> .title").click()])
      )
      assert.match(page.url(), /\/inside$/)
      yield* until("read", account.api.get("/v1/notifications"), ({ json }) => json.unread === 1)
    }))

  it.effect("makes no link of an address that is script", () =>
    Effect.gen(function* () {
      const { notify, arrived, open, page } = yield* visiting
      yield* notify("A link")
      yield* arrived(2)
      yield* open("/bare")
      yield* Effect.promise(() =>
        page.evaluate(`(() => {
          const inbox = document.createElement("bailiwick-inbox")
          inbox.setAttribute("base", "/api")
          inbox.toggleAttribute("inline", true)
          inbox.fetch = async (input, init) => {
            const answer = await fetch(input, init)
            if (!/limit=/.test(input)) return answer
            return new Response((await answer.text()).replace("/inside", "javascript:document.title='taken'"), answer)
          }
          document.querySelector("main").append(inbox)
        })()`)
      )
      yield* wait(page, `texts(".title")[0] === "A link"`)
      assert.isFalse(yield* look(page, `root.querySelector(".title").hasAttribute("href")`))
      yield* press(page, ".title")
      yield* wait(page, `texts("li.unread").length === 1`)
      assert.strictEqual(yield* Effect.promise(() => page.title()), "A product")
    }))

  it.effect("moves only where the visitor has nothing against it", () =>
    Effect.gen(function* () {
      const { open, page } = yield* visiting
      const duration = `getComputedStyle(root.querySelector(".panel")).transitionDuration`
      yield* open("/")
      yield* wait(page, `texts(".badge")[0] === "1"`)
      for (const [value, expected] of [["no-preference", "0.12s"], ["reduce", "0s"]] as const) {
        yield* Effect.promise(() => page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value }]))
        assert.match(String(yield* look(page, duration)), new RegExp(`^${expected}`))
      }
    }))
})
