/** Fixture: a running demo, a browser, and actions on its pages: open the mailbox, follow a link, press a button. */
import type { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "puppeteer-core"
import { Database } from "../../services/platform/database/Database.ts"
import { browser, visitor, type VisitorOptions } from "../support/Browser.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { TestBus } from "../support/TestBus.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { api, type ApiClient } from "./support/ApiClient.ts"
import { instance } from "./support/ProgramInstance.ts"
import { until } from "./support/Until.ts"

interface Person {
  readonly id: string
  readonly email: string
  readonly api: ApiClient
}

export class Demo extends Context.Service<Demo, {
  readonly origin: string
  readonly devKey: string
  readonly alice: Person
  readonly bob: Person
  /** Of alice. */
  readonly domainId: string
  readonly sql: PgClient.PgClient
  readonly browser: Browser
  /** Links that were given out. */
  readonly used: Set<string>
}>()("bailiwick/test/e2e/PagesDemo") {
  static readonly layer = Layer.effect(
    Demo,
    Effect.gen(function* () {
      const home = yield* emptyHome
      const database = yield* TestDatabase
      const { owner } = yield* Database
      const bus = yield* TestBus.make
      const program = yield* instance({
        BAILIWICK_HOME: home,
        PORT: "0",
        DEMO: "true",
        DATABASE_URL: Redacted.value(database.url),
        DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
        NATS_URL: Redacted.value(bus.url),
        INITIATE_TRANSFER_RATE: "100",
        LOG_LEVEL: "warn",
      })
      yield* program.start()
      const key = /mailbox\?key=(\S+)\n/
      const said = yield* until("the dev key", Effect.sync(program.output), (output) => key.test(output))
      const { accounts } = JSON.parse(readFileSync(join(home, "demo.json"), "utf8"))
      const person = (name: string): Person => {
        const { api_key, email, id } = accounts[name]
        return { id, email, api: api(program.origin, { authorization: `Bearer ${api_key}` }) }
      }
      return {
        origin: program.origin(),
        devKey: key.exec(said)![1]!,
        alice: person("alice"),
        bob: person("bob"),
        domainId: accounts.alice.domain_id,
        sql: owner,
        browser: yield* browser,
        used: new Set<string>(),
      }
    }),
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

/** A visitor with the dev key, at the mailbox. */
export const atMailbox = Effect.fnUntraced(function* (options: VisitorOptions) {
  const { browser, devKey, origin } = yield* Demo
  const who = yield* visitor(browser, options)
  yield* Effect.promise(() => who.page.goto(`${origin}/dev/mailbox?key=${devKey}`))
  return who
})

/** Alice offers her domain to Bob; returns the transfer's id. */
export const offer = Effect.fnUntraced(function* (note: string) {
  const { alice, bob, domainId } = yield* Demo
  const reply = yield* alice.api.post(`/v1/domains/${domainId}/transfer`, { target_email: bob.email, note })
  assert.strictEqual(reply.status, 200, reply.text)
  return reply.json.id as string
})

/** The whole row of a transfer. */
export const rowOf = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Demo
  const [row] = yield* sql<{ row: string; status: string; rotate: boolean }>`
    select to_jsonb(t)::text as row, status, rotate_dkim as rotate from transfers t where id = ${id}::uuid`
  return row!
})

/** Waits for the mailbox's newest link of this kind that was not given out before. */
export const newLink = Effect.fnUntraced(function* (page: Page, kind: "accept" | "stop") {
  const { origin, used } = yield* Demo
  const look = Effect.promise(async () => {
    await page.goto(`${origin}/dev/mailbox`)
    for (const message of await page.$$eval("td:first-child a", (links) => links.map((a) => a.href))) {
      await page.goto(message)
      const links = await page.$$eval("pre a", (links) => links.map((a) => a.href))
      const found = links.find((href) => href.includes(`/transfers/${kind}/`) && !used.has(href))
      if (found !== undefined) return found
    }
    return null
  })
  const link = (yield* until(`a new ${kind} link`, look, (href) => href !== null))!
  used.add(link)
  return link
})

/** Follows the link, or presses the button, with these words, and waits for the next page. */
export const press = (page: Page, words: string) =>
  Effect.promise(async () => {
    const [found] = await page.$$(`::-p-xpath(//a[contains(., "${words}")] | //button[contains(., "${words}")])`)
    if (found === undefined) throw new Error(`nothing says "${words}" on ${await textOf(page)}`)
    await Promise.all([page.waitForNavigation(), found.click()])
  })

export const textOf = (page: Page) => page.$eval("body", (body) => body.innerText)

/** Opens a link and returns the page's text. */
export const opened = (page: Page, link: string) =>
  Effect.promise(async () => {
    await page.goto(link)
    return await textOf(page)
  })

/** Elements that reach beyond the sides of the window. */
export const overflowing = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(() => {
      const width = document.documentElement.clientWidth
      const wide = [...document.querySelectorAll("*")].filter((element) => {
        const { left, right } = element.getBoundingClientRect()
        return left < -1 || right > width + 1
      })
      return [
        ...wide.map(({ tagName }) => tagName),
        ...(document.documentElement.scrollWidth > width ? ["page"] : []),
      ]
    })
  )
