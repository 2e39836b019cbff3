/**
 * Institutions and projects at the console, in real Chromium: a person is invited and the invitation withdrawn, a project is
 * looked at as its Sponsor and as a person with Access, and ids of another institution are answered as unknown ones.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { Page } from "puppeteer-core"
import { InstitutionId, ProjectId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { access, institution, member, person, project } from "../../../support/TestIdentity.ts"
import {
  type AtConsole,
  choose,
  Chromium,
  deciderAt,
  downloads,
  everyLook,
  fill,
  fillTime,
  heading,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const fern = `/console/institutions/${demoIdentityIds.fern}`
const portal = `/console/projects/${demoIdentityIds.fernPortal}`

/** A browser that was refused an old version: it reports the answer, which is none of the page's faults. */
const refused = (at: AtConsole): AtConsole => ({
  ...at,
  complaints: at.complaints.filter((one) => !one.includes("status of 409")),
})

/** Asks the API within the page, as the console does: status and body, without what names the request. */
const asked = (page: Page, path: string, method = "GET", body: unknown = null) =>
  Effect.promise(() =>
    page.evaluate(
      async (path: string, method: string, body: unknown) => {
        const response = await fetch(path, {
          method,
          headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
          body: body === null ? null : JSON.stringify(body),
        })
        const { audit_id: _audit, instance: _path, request_id: _id, ...rest } = await response.json()
        return { status: response.status, rest }
      },
      path,
      method,
      body,
    )
  )

/** What a dialog says that has changed: name, before, now. */
const difference = (page: Page) =>
  Effect.promise(async () => {
    // What is now is asked for once the words are shown.
    await page.waitForSelector("dialog[open] tbody tr")
    return await page.$$eval(
      "dialog[open] tbody tr",
      (rows) => rows.map((row) => [...row.children].slice(0, 3).map((one) => one.textContent?.trim())),
    )
  })

/** The headings of tables of which a word stands on two lines. */
const torn = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(() =>
      [...document.querySelectorAll("th")].filter((head) => {
        const range = document.createRange()
        range.selectNodeContents(head)
        const lines = new Set([...range.getClientRects()].map(({ top }) => top))
        return lines.size > head.textContent.trim().split(" ").length
      }).map((head) => head.textContent)
    )
  )

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "institutions at the console",
  (it) => {
    it.effect("Sam invites a person to Fern, and withdraws the invitation", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", "/console/institutions", "Institutions")
        const { page } = sam
        yield* text(page, "Projects that you own")
        yield* everyLook(sam, "institutions")
        yield* press(page, "Fern")
        yield* heading(page, "Fern")
        yield* text(page, "There is no invitation yet.")
        yield* press(page, "Invite…")
        yield* fill(page, "Their email address", "new@fern.example")
        yield* fill(page, "Reason", "joins the team on Monday")
        yield* everyLook(sam, "institution-invite")
        yield* press(page, "Ask for the invitation")
        yield* text(page, "waits for its review")
        yield* text(page, "joins the team on Monday")
        assert.isFalse(
          yield* Effect.promise(() => page.evaluate(() => document.body.innerText.includes("new@fern.example"))),
        )
        yield* everyLook(sam, "institution")
        yield* press(page, "Withdraw…")
        yield* fill(page, "Reason", "the team is complete")
        yield* press(page, "Withdraw the invitation")
        yield* text(page, "revoked")
        const { rest: { items } } = yield* asked(page, `/v1/institutions/${demoIdentityIds.fern}/enrollments`)
        assert.deepStrictEqual(items.map(({ state }: { state: string }) => state), ["revoked"])
        yield* press(page, "Invite again…")
        yield* text(page, "n***@fern.example is invited again")
        yield* fill(page, "Reason", "a place is free again")
        yield* everyLook(sam, "institution-renew")
        yield* press(page, "Ask for it again")
        yield* text(page, "a place is free again")
        yield* everyLook(sam, "institution-renewed")
      }))

    it.effect("Sam asks for a change of a membership, and registers a website that appears with its state", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", fern, "Fern")
        yield* press(sam.page, "Change…")
        yield* fill(sam.page, "Reason", "is away for half a year")
        yield* everyLook(sam, "institution-change")
        yield* press(sam.page, "Ask for this change")
        yield* text(sam.page, "A Sponsor and an administrator decide.")
        yield* press(sam.page, "Lost authenticators…")
        yield* fill(sam.page, "Reason", "the bag with phone and key was stolen")
        yield* everyLook(sam, "institution-lost-authenticators")
        yield* press(sam.page, "Ask for their removal")
        yield* text(sam.page, "The removal is asked for.")
        yield* press(sam.page, "Register a website…")
        yield* fill(sam.page, "Name", "Fern Garden")
        yield* fill(sam.page, "Address of the website", "https://garden.fern.example")
        yield* fill(sam.page, "Redirect URIs", "https://garden.fern.example/callback")
        yield* press(sam.page, "Connector and sign-out")
        yield* choose(sam.page, "Kind", "A service connector")
        yield* text(sam.page, "Digest of the preview")
        yield* choose(sam.page, "Kind", "It signs people in")
        yield* fill(sam.page, "Redirect URIs after a sign-out", "https://garden.fern.example/bye")
        yield* fill(sam.page, "Back-channel logout URI", "https://garden.fern.example/logout")
        yield* fill(sam.page, "Reason", "a garden for the guests")
        yield* everyLook(sam, "institution-register")
        yield* press(sam.page, "Register the website")
        yield* press(sam.page, "Fern Garden", "a")
        yield* heading(sam.page, "Fern Garden")
        const { rest: garden } = yield* asked(sam.page, new URL(sam.page.url()).pathname.replace("/console", "/v1"))
        assert.deepStrictEqual(garden.post_logout_redirect_uris, ["https://garden.fern.example/bye"])
        assert.strictEqual(garden.backchannel_logout_uri, "https://garden.fern.example/logout")
        yield* text(sam.page, "waits for its review: “a garden for the guests”")
        yield* text(sam.page, "No launch was proposed yet.")
        yield* press(sam.page, "Propose a launch…")
        yield* fill(sam.page, "Reason", "the garden is open")
        yield* press(sam.page, "Propose the launch")
        yield* text(sam.page, "An administrator decides on the launch.")
        yield* everyLook(sam, "project-proposed")

        // The provider's job has made the client of the website.
        const { sql } = yield* Database
        yield* sql`update projects set client_id = 'client-garden' where name = 'Fern Garden'`
        yield* sam.open("/console/requests", "My requests")
        yield* text(sam.page, "joins the team on Monday")
        const results = yield* Effect.promise(() =>
          sam.page.$$eval(
            'td[data-label="Result"]',
            (cells) => cells.map((one) => (one as HTMLElement).innerText.split("\n")[0]),
          )
        )
        assert.deepStrictEqual(results, [
          "nothing yet",
          "client client-garden Copy id",
          "nothing yet",
          "nothing yet",
          "mail – not sent",
          "mail – not sent",
        ])
        yield* everyLook(sam, "requests-results")
      }))

    it.effect("Ada opens a campaign, Sam proposes a revocation in it, and Ada delegates what is left and closes it", () =>
      Effect.gen(function* () {
        const { owner, sql } = yield* Database
        const rae = yield* person({ display_name: "Rae" })
        const kept = yield* access(
          InstitutionId.make(demoIdentityIds.fern),
          ProjectId.make(demoIdentityIds.fernPortal),
          rae,
        )
        const ada = yield* deciderAt("Ada", fern, "Fern")
        yield* press(ada.page, "Campaigns")
        yield* heading(ada.page, "Campaigns")
        yield* text(ada.page, "There was no campaign yet.")
        yield* text(ada.page, "Every active Access was granted, reviewed or confirmed within a year.")
        // A year has passed since Rae's Access was granted.
        yield* owner`alter table access_versions disable trigger user`
        yield* owner`update access_versions set created_at = now() - interval '400 days' where access_id = ${kept}`
        yield* owner`alter table access_versions enable trigger user`
        yield* ada.open(`${fern}/campaigns`, "Campaigns")
        yield* text(ada.page, "Rae")
        yield* everyLook(ada, "overdue-reviews")
        yield* press(ada.page, "Still needed…")
        yield* fill(ada.page, "Reason", "works on the portal daily")
        yield* everyLook(ada, "overdue-confirm")
        yield* press(ada.page, "Confirm it")
        yield* text(ada.page, "Every active Access was granted, reviewed or confirmed within a year.")
        yield* ada.open(`${fern}/access/${kept}`, "Access of Rae")
        yield* text(ada.page, "“works on the portal daily”")
        const confirmed = yield* Effect.promise(() =>
          ada.page.$$eval(
            "section[aria-labelledby=confirmations] tbody td, section[aria-labelledby=confirmations] tbody th",
            (cells) => cells.map((one) => (one as HTMLElement).innerText.split("\n")[0]),
          )
        )
        assert.deepStrictEqual(confirmed, ["1", confirmed[1], "you"])
        yield* everyLook(ada, "access-confirmed")
        const downloaded = yield* downloads(ada)
        const pack = yield* downloaded(
          `evidence-${rae}.ndjson`,
          press(ada.page, "Download the person's evidence"),
        )
        yield* text(ada.page, "The file has the whole pack, signed.")
        assert.include(pack, "works on the portal daily")
        yield* ada.open(`${fern}/campaigns`, "Campaigns")
        yield* press(ada.page, "Open a campaign…")
        yield* fill(ada.page, "Name", "Spring")
        yield* fillTime(ada.page, "Deadline", new Date(Date.now() + 9 * 86_400_000).toISOString().slice(0, 16))
        yield* fill(ada.page, "Reason", "as every spring")
        yield* everyLook(ada, "campaign-open")
        yield* press(ada.page, "Open the campaign")
        yield* heading(ada.page, "Spring")
        yield* text(ada.page, "0 of 2")
        yield* everyLook(ada, "campaign")

        const sam = yield* deciderAt("Sam", "/console/decide", "To decide")
        yield* text(sam.page, "Is this Access still needed?")
        yield* everyLook(sam, "decide-campaign")
        const rows = "section[aria-labelledby=own-items] tbody tr"
        const of = (name: string, words: string) =>
          Effect.promise(() =>
            sam.page.$$eval(
              rows,
              (all, name, words) => {
                const row = all.find((one) => (one as HTMLElement).innerText.includes(name))!
                const found = [...row.querySelectorAll("button")].find((one) => one.textContent === words)!
                found.click()
              },
              name,
              words,
            )
          )
        yield* of("Rae", "Not needed…")
        yield* fill(sam.page, "Reason", "has left the team")
        yield* press(sam.page, "Propose it")
        yield* text(sam.page, "The revocation is proposed. An administrator decides.")
        const active = sql`select from access where person_id = ${rae} and state = 'active'`
        assert.lengthOf(yield* active, 1)

        yield* ada.open(new URL(ada.page.url()).pathname, "Spring")
        yield* text(ada.page, "1 of 2")
        yield* text(ada.page, "the proposal is submitted")
        yield* press(ada.page, "Delegate…")
        yield* choose(ada.page, "Delegate", "Abe")
        yield* fill(ada.page, "Reason", "knows the team best")
        yield* everyLook(ada, "campaign-delegate")
        yield* press(ada.page, "Delegate", "dialog button")
        yield* text(ada.page, "The item is delegated.")
        const deadline = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 16)
        yield* Effect.promise(() => ada.page.emulateTimezone("Asia/Kolkata"))
        yield* press(ada.page, "Move the deadline…")
        yield* fillTime(ada.page, "New deadline", deadline)
        yield* fill(ada.page, "Reason", "the spring is long")
        yield* everyLook(ada, "campaign-deadline")
        // Another administrator was faster: nothing is overwritten unseen.
        const shown = Effect.promise(() =>
          ada.page.$$eval(
            "main dl div",
            (all) => all.map((one) => one.textContent).find((text) => text?.startsWith("Deadline")),
          )
        )
        const before = yield* shown
        assert.isDefined(before)
        yield* sql`update campaigns set deadline = deadline + interval '3 days' where name = 'Spring'`
        yield* press(ada.page, "Move the deadline")
        yield* text(ada.page, "The campaign has changed since you opened this.")
        yield* everyLook(ada, "campaign-moved")
        yield* press(ada.page, "Cancel")
        yield* Effect.repeat(shown, { until: (now) => now !== before })
        yield* press(ada.page, "Move the deadline…")
        yield* fillTime(ada.page, "New deadline", deadline)
        yield* fill(ada.page, "Reason", "the spring is long")
        yield* press(ada.page, "Move the deadline")
        yield* text(ada.page, "The deadline is moved.")
        const moved = yield* sql<{ deadline: Date }>`select deadline from campaigns where name = 'Spring'`
        assert.deepStrictEqual(moved.map((one) => one.deadline.toISOString()), [
          new Date(`${deadline}:00+05:30`).toISOString(),
        ])
        yield* press(ada.page, "Close it…")
        yield* fill(ada.page, "Reason", "the spring is over")
        yield* press(ada.page, "Close the campaign")
        yield* text(ada.page, "unanswered")
        yield* everyLook(ada, "campaign-closed")
        assert.lengthOf(yield* active, 1)
      }))

    it.effect("Sam proposes a service grant that Ada approves, and withdraws the project in the version on screen", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", portal, "Fern Portal")
        yield* text(sam.page, "No product follows the project yet.")
        yield* press(sam.page, "access granted")
        yield* text(sam.page, "secevent/lifecycle/event-type/access-granted")
        yield* press(sam.page, "Propose a grant…")
        yield* fill(sam.page, "Client id of the service", "fern-mirror")
        const end = new Date(Math.ceil(Date.now() / 86_400_000) * 86_400_000 + 86_400_000).toISOString()
        yield* Effect.promise(async () => {
          await sam.page.emulateTimezone("UTC")
          await sam.page.locator("dialog[open] input[name=expires_at]").fill(end.slice(0, 16))
        })
        yield* fill(sam.page, "Reason", "the mirror follows us")
        yield* everyLook(sam, "project-grant")
        yield* press(sam.page, "Propose the grant")
        yield* text(sam.page, "waits for an administrator")
        yield* everyLook(sam, "project")
        const grants = yield* asked(sam.page, `/v1/projects/${demoIdentityIds.fernPortal}/lifecycle-service-grants`)
        assert.deepStrictEqual(grants.rest["0"].expires_at, end)

        // Sam opens the end of the project, Ada changes it meanwhile, and Abe decides on the grant after her.
        const abe = yield* deciderAt("Abe", portal, "Fern Portal")
        yield* press(abe.page, "Approve…")
        yield* fill(abe.page, "Reason", "looked at it, too")
        yield* press(sam.page, "Withdraw…")
        yield* fill(sam.page, "Name of the project", "Fern Portal")
        yield* fill(sam.page, "Reason", "the portal has ended")
        const ada = yield* deciderAt("Ada", portal, "Fern Portal")
        yield* press(ada.page, "Approve…")
        yield* fill(ada.page, "Reason", "looked at it myself")
        yield* press(ada.page, "Approve")
        yield* text(ada.page, "approved by you")
        yield* press(abe.page, "Approve")
        yield* text(abe.page, "The grant has changed since you opened this.")
        assert.deepInclude(yield* difference(abe.page), ["State", "proposed", "approved"])
        yield* everyLook(refused(abe), "grant-changed")
        yield* press(abe.page, "Cancel")
        yield* Effect.promise(() => abe.page.waitForFunction(() => !document.body.innerText.includes("Approve…")))
        yield* press(ada.page, "Add an owner…")
        yield* choose(ada.page, "Member of the institution", "Ada")
        yield* fill(ada.page, "Reason", "two look after it")
        yield* everyLook(ada, "project-owner")
        yield* press(ada.page, "Make this person an owner")
        yield* text(ada.page, "Remove…")

        yield* press(sam.page, "Withdraw it for good")
        yield* text(sam.page, "The project has changed since you opened this.")
        yield* text(sam.page, "you, Ada")
        const [owners, version] = yield* difference(sam.page)
        assert.deepStrictEqual(owners, ["Owners", "you", "you, Ada"])
        assert.strictEqual(version?.[0], "Version")
        yield* everyLook(refused(sam), "project-changed")
        yield* press(sam.page, "Cancel")
        yield* press(sam.page, "Withdraw…")
        yield* fill(sam.page, "Name of the project", "Fern Portal")
        yield* fill(sam.page, "Reason", "the portal has ended")
        // Two withdraw it at once: the second one is shown that it has ended.
        yield* press(ada.page, "Withdraw…")
        yield* fill(ada.page, "Name of the project", "Fern Portal")
        yield* fill(ada.page, "Reason", "the portal has ended, too")
        yield* press(sam.page, "Withdraw it for good")
        yield* text(sam.page, "Nothing leads back")
        yield* everyLook(refused(sam), "project-withdrawn")
        yield* press(ada.page, "Withdraw it for good")
        yield* text(ada.page, "The project has changed since you opened this.")
        const [state] = yield* difference(ada.page)
        assert.deepStrictEqual([state?.[0], state?.[2]], ["State", "withdrawn"])
        yield* everyLook(refused(ada), "project-withdrawn-twice")
      }))

    it.effect("a person with Access sees the project without its decisions, and nothing of the institution", () =>
      Effect.gen(function* () {
        const pat = yield* deciderAt("Pat", portal, "Fern Portal")
        yield* text(pat.page, "Redirect URIs")
        const shown = yield* Effect.promise(() => pat.page.evaluate(() => document.body.innerText))
        for (const hidden of ["Owners", "Launches", "Service grants", "Withdraw…"]) assert.notInclude(shown, hidden)
        yield* pat.open("/console/institutions", "Institutions")
        yield* text(pat.page, "You belong to no institution yet.")
        yield* pat.open(fern, "Institution")
        yield* text(pat.page, "There is no such thing, or it is not yours.")
      }))

    it.effect("Sam reads why Pat has Access, and that no person had it before it was granted", () =>
      Effect.gen(function* () {
        const sam = yield* deciderAt("Sam", fern, "Fern")
        yield* press(sam.page, "Pat", "table a")
        yield* heading(sam.page, "Access of Pat")
        yield* text(sam.page, "not in effect because the project is withdrawn")
        yield* text(sam.page, "the directory granted this Access")
        // Its project by its name, as in the list before.
        yield* text(sam.page, "Fern Portal")
        yield* everyLook(sam, "access-explanation")
        yield* Effect.promise(() => sam.page.setViewport({ width: 900, height: 800 }))
        assert.deepStrictEqual(yield* torn(sam.page), [])
        yield* sam.open(`${fern}/access/${randomUUID()}`, "Access")
        yield* text(sam.page, "There is no such thing, or it is not yours.")
        yield* sam.open(`${fern}?at=2001-01-01T00:00:00.000Z`, "Fern")
        yield* text(sam.page, "No person had Access then.")
        yield* sam.open(`${fern}?access=${"f".repeat(8)}-ffff-7fff-bfff-${"f".repeat(12)}`, "Fern")
        yield* text(sam.page, "The list ends before this place.")
        yield* sam.open(`${fern}?access=zzz`, "Fern")
        yield* text(sam.page, "The list ends before this place.")
        // The last moment that a Date has: east of Greenwich it has none of its own.
        yield* Effect.promise(() => sam.page.emulateTimezone("Europe/Berlin"))
        yield* sam.open(`${fern}?at=%2B275760-09-13T00:00:00Z`, "Fern")
        yield* text(sam.page, "at: Input should be")
      }))

    it.effect("an auditor reads who may act and who decided it, finds nothing to change, and is refused any change", () =>
      Effect.gen(function* () {
        const ida = yield* deciderAt("Ida", "/console/operations/audit", "Audit")
        const { page } = ida
        const menu = yield* Effect.promise(() =>
          page.$$eval("nav[aria-label=Main] a", (all) => all.map((one) => one.textContent))
        )
        assert.deepStrictEqual(menu.slice(0, 3), ["Audit", "Access reviews", "Institutions"])
        yield* text(page, "You are an auditor")
        yield* everyLook(ida, "auditor-audit")
        const buttons = () =>
          Effect.promise(() => page.$$eval("main button", (all) => all.map((one) => one.textContent?.trim())))
        yield* press(page, "Institutions")
        yield* heading(page, "Institutions")
        yield* text(page, "Fern")
        assert.deepStrictEqual(yield* buttons(), [])
        yield* press(page, "Fern")
        yield* heading(page, "Fern")
        yield* text(page, "Pat")
        yield* text(page, "Fern Portal")
        yield* everyLook(ida, "auditor-institution")
        assert.deepStrictEqual(yield* buttons(), ["Download the evidence"])
        const downloaded = yield* downloads(ida)
        const pack = yield* downloaded(
          `evidence-${demoIdentityIds.fern}.ndjson`,
          press(page, "Download the evidence"),
        )
        yield* text(page, "The file has the whole pack, signed.")
        assert.include(pack, demoIdentityIds.patAccess)
        yield* press(page, "Access reviews", "main a")
        yield* heading(page, "Access reviews")
        yield* text(page, "As of")
        yield* ida.open(`${fern}/access/${demoIdentityIds.patAccess}`, "Access of Pat")
        yield* text(page, "the directory granted this Access")
        yield* text(page, "Fern Portal")
        yield* everyLook(ida, "auditor-explanation")
        yield* ida.open("/console/account", "My account")
        yield* text(page, "Linked identities")
        yield* text(page, "this session")
        const controls = yield* Effect.promise(() =>
          page.$$eval("main :is(button, select, input)", (all) => all.map((one) => one.textContent?.trim()))
        )
        assert.deepStrictEqual(controls, ["Copy id"])
        yield* everyLook(ida, "auditor-account")
        for (
          const path of ["/v1/me/organization-requests", `/v1/institutions/${demoIdentityIds.fern}/enrollments`]
        ) {
          const { rest, status } = yield* asked(page, path, "POST", {})
          assert.deepStrictEqual([status, rest.code], [403, "auditor_reads_only"], path)
        }
      }))

    it.effect("ids of another institution are answered as unknown ones", () =>
      Effect.gen(function* () {
        const moss = yield* institution({ name: "Moss" })
        const mo = yield* person()
        yield* member(moss, mo, "administrator")
        const site = yield* project(moss, { name: "Moss Site" })
        const sam = yield* deciderAt("Sam", "/console/institutions", "Institutions")
        for (
          const [path, foreign] of [
            ["/v1/institutions/:id", moss],
            ["/v1/institutions/:id/members", moss],
            ["/v1/institutions/:id/enrollments", moss],
            ["/v1/institutions/:id/projects", moss],
            ["/v1/institutions/:id/access", moss],
            [`/v1/institutions/:id/access/${demoIdentityIds.patAccess}/explain`, moss],
            ["/v1/projects/:id", site],
            ["/v1/projects/:id/launch-proposals", site],
            ["/v1/projects/:id/owners", site],
            ["/v1/projects/:id/events", site],
            ["/v1/projects/:id/lifecycle-service-grants", site],
            ["/v1/projects/:id/operations/diagnostics", site],
          ] as const
        ) {
          const theirs = yield* asked(sam.page, path.replace(":id", foreign))
          const unknown = yield* asked(sam.page, path.replace(":id", randomUUID()))
          assert.strictEqual(theirs.status, 404, path)
          assert.deepStrictEqual(theirs, unknown, path)
        }
        for (const path of [`/console/institutions/${moss}`, `/console/projects/${site}`]) {
          yield* sam.open(path)
          yield* text(sam.page, "There is no such thing, or it is not yours.")
          const shown = yield* Effect.promise(() => sam.page.evaluate(() => document.body.innerText))
          assert.notInclude(shown, "Moss", path)
        }
      }))
  },
)
