/**
 * The pages behind mailed links in real Chromium, used as people do: from the mailbox, through the demo's sign-in, by
 * the pages' own links and buttons. Any complaint of the browser fails the test.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { audited } from "../support/Audited.ts"
import { phone, visitor } from "../support/Browser.ts"
import { atMailbox, Demo, newLink, offer, opened, overflowing, press, rowOf, textOf } from "./PagesDemo.ts"
import { api } from "./support/ApiClient.ts"
import { until } from "./support/Until.ts"

const long = `Dear Bob, ${"averyveryverylongword".repeat(12)} is yours.`

layer(Demo.layer, { excludeTestServices: true, timeout: "2 minutes" })("pages behind mailed links", (it) => {
  it.effect(
    "without scripts, on a phone: offered, signed in, accepted with a new key, then stopped",
    () =>
      Effect.gen(function* () {
        const { origin } = yield* Demo
        const id = yield* offer(long)
        const { complaints, page } = yield* atMailbox({ viewport: phone, scripts: false })
        const acceptLink = yield* newLink(page, "accept")
        const before = yield* rowOf(id)

        // Viewing a page changes nothing, however often.
        const stranger = yield* opened(page, acceptLink)
        assert.include(stranger, "24 hours after you accept")
        for (let n = 0; n < 3; n++) yield* Effect.promise(() => page.reload())
        assert.deepStrictEqual(yield* overflowing(page), [])
        yield* press(page, "Sign in")
        assert.include(page.url(), `${origin}/dev/sign-in?state=`)
        assert.deepStrictEqual(yield* overflowing(page), [])
        yield* press(page, "Carol")
        const wrong = yield* Effect.promise(() => textOf(page))
        assert.include(wrong, "This offer is for another account")
        yield* press(page, "Sign in")
        yield* press(page, "Bob")
        assert.strictEqual(page.url(), acceptLink)
        const asked = yield* Effect.promise(() => textOf(page))
        for (const shown of ["Accept alder.example?", "Alice", "Birch", "UTC"]) assert.include(asked, shown)
        assert.deepStrictEqual(yield* overflowing(page), [])
        const button = yield* Effect.promise(async () => {
          const found = (await page.$("button"))!
          await found.scrollIntoView()
          return { visible: await found.isVisible(), box: (await found.boundingBox())! }
        })
        assert.isTrue(button.visible)
        assert.isAtLeast(button.box.height, 44)
        assert.isAtLeast(button.box.width, 300)
        assert.strictEqual((yield* rowOf(id)).row, before.row)

        yield* Effect.promise(() => page.click("label[for=rotate_dkim]"))
        yield* press(page, "Accept the domain")
        assert.strictEqual(page.url(), `${origin}/transfers/done/accepted`)
        const accepted = yield* rowOf(id)
        assert.deepStrictEqual([accepted.status, accepted.rotate], ["accepted", true])
        assert.include(yield* opened(page, acceptLink), "This link was used already")

        const stopLink = yield* newLink(page, "stop")
        assert.include(yield* opened(page, stopLink), "Stop the transfer of alder.example?")
        yield* Effect.promise(() => page.reload())
        assert.deepStrictEqual(yield* overflowing(page), [])
        assert.strictEqual((yield* rowOf(id)).status, "accepted")
        yield* press(page, "Stop this transfer")
        assert.strictEqual(page.url(), `${origin}/transfers/done/stopped`)
        assert.strictEqual((yield* rowOf(id)).status, "reversed")
        assert.include(yield* opened(page, stopLink), "This link was used already")
        assert.include(yield* opened(page, acceptLink), "accepted and then stopped")
        assert.deepStrictEqual(complaints, [])
      }),
    240_000,
  )

  it.effect(
    "links of ended offers explain themselves, and so does an unknown link",
    () =>
      Effect.gen(function* () {
        const { alice, bob, origin, sql } = yield* Demo
        const { complaints, page } = yield* atMailbox({})
        const ends = {
          "was cancelled": (id: string) => alice.api.delete(`/v1/domain-transfers/${id}`),
          "was declined": (id: string) => bob.api.post(`/v1/domain-transfers/${id}/decline`),
          "expired on": (id: string) =>
            sql`update transfers set initiated_at = initiated_at - interval '8 days',
            expires_at = expires_at - interval '8 days' where id = ${id}::uuid`,
        }
        for (const [words, end] of Object.entries(ends)) {
          const id = yield* offer("")
          const link = yield* newLink(page, "accept")
          yield* end(id)
          const said = yield* opened(page, link)
          assert.include(said, words)
          assert.isNull(yield* Effect.promise(() => page.$("form, button, a.button")))
          yield* until("its end", rowOf(id), ({ status }) => status !== "pending")
        }
        assert.include(yield* opened(page, `${origin}/transfers/accept/${"A".repeat(43)}`), "This link is not known")
        assert.include(yield* opened(page, `${origin}/transfers/stop/x`), "This link is not known")
        assert.deepStrictEqual(complaints, [])
      }),
    240_000,
  )

  it.effect(
    "a browser without the demo's key is asked for it, then sees the offer again, and declines it",
    () =>
      Effect.gen(function* () {
        const { browser, devKey, origin } = yield* Demo
        const id = yield* offer("")
        const link = yield* newLink((yield* atMailbox({})).page, "accept")
        const { complaints, page } = yield* visitor(browser, { viewport: phone, scripts: false })
        assert.include(yield* opened(page, link), "b***@birch.example")
        yield* press(page, "Sign in")
        assert.include(yield* Effect.promise(() => textOf(page)), "Key needed")
        yield* Effect.promise(() => page.type("input[name=key]", devKey))
        yield* press(page, "Open")
        yield* press(page, "Bob")
        assert.strictEqual(page.url(), link)
        assert.include(yield* Effect.promise(() => textOf(page)), "b***@birch.example")
        assert.deepStrictEqual(yield* overflowing(page), [])
        yield* press(page, "Decline the offer")
        assert.strictEqual(page.url(), `${origin}/transfers/done/declined`)
        assert.strictEqual((yield* rowOf(id)).status, "declined")
        // The page that asks for the key is a 401, which a browser notes.
        assert.deepStrictEqual(complaints.filter((complaint) => !complaint.includes("401")), [])
      }),
    240_000,
  )

  it.effect(
    "with scripts, on a desktop: without the choice the key stays; a double press accepts without page errors",
    () =>
      Effect.gen(function* () {
        const id = yield* offer("")
        const { complaints, page } = yield* atMailbox({})
        const link = yield* newLink(page, "accept")
        yield* opened(page, link)
        yield* press(page, "Sign in")
        yield* press(page, "Bob")
        assert.deepStrictEqual(yield* overflowing(page), [])
        yield* Effect.promise(() => page.click("button", { count: 2 }))
        yield* until("accepted", rowOf(id), ({ status }) => status === "accepted")
        assert.isFalse((yield* rowOf(id)).rotate)
        assert.deepStrictEqual(complaints, [])
      }),
    240_000,
  )

  it.effect("a page's refusal is audited with its own code", () =>
    Effect.gen(function* () {
      const { origin } = yield* Demo
      const own = {
        origin: "null",
        "sec-fetch-site": "same-origin",
        "content-type": "application/x-www-form-urlencoded",
      }
      const refusals = [
        ["POST", "/transfers/accept/x", own, 404, "not_found"],
        ["POST", "/transfers/stop/x", { origin: "https://evil.example" }, 403, "csrf_rejected"],
        ["GET", "/transfers/resume?state=x", {}, 400, "malformed_request"],
        ["GET", "/dev/mailbox", {}, 401, "invalid_credentials"],
      ] as const
      const refused = Effect.fnUntraced(
        function* ([method, path, headers, status, code]: typeof refusals[number], n: number) {
          const requestId = `pages-${n}`
          const reply = yield* api(() => origin).call(method, path, {
            headers: { ...headers, "x-request-id": requestId },
          })
          assert.deepStrictEqual([reply.status, reply.headers.get("content-type")], [
            status,
            "text/html; charset=utf-8",
          ])
          assert.deepInclude(yield* audited(requestId), { status, code })
        },
      )
      yield* Effect.forEach(refusals, refused, { concurrency: 4, discard: true })
    }))
})
