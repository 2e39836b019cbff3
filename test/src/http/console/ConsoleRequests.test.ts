/** A person's own requests at the console, in real Chromium: asked for by forms, and withdrawn while they are undecided. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { PersonId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import { institution, member, owner, project } from "../../../support/TestIdentity.ts"
import {
  choose,
  Chromium,
  deciderAt,
  everyLook,
  fill,
  fillTime,
  heading,
  inConsole,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const moss = {
  name: "Moss",
  organization_type: "school",
  website: "https://moss.example",
  domains: ["moss.example"],
  purpose: "to teach what we know",
  contacts: [{ name: "Mo", email: "mo@moss.example" }],
  reason: "the school opens in May",
}

layer(Layer.merge(staged(), Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "own requests at the console",
  (it) => {
    it.effect("Pat, who decides nothing, lands on the own requests", () =>
      Effect.gen(function* () {
        const { page } = yield* inConsole("Pat")
        yield* heading(page, "My requests")
        yield* text(page, "You have asked for nothing yet.")
      }))

    it.effect("Pat withdraws a request for an institution, which no longer waits for Oz", () =>
      Effect.gen(function* () {
        const pat = yield* deciderAt("Pat", "/console/requests", "My requests")
        const asked = yield* Effect.promise(() =>
          pat.page.evaluate(async (body: string) => {
            const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() }
            return (await fetch("/v1/me/organization-requests", { method: "POST", headers, body })).status
          }, JSON.stringify(moss))
        )
        assert.strictEqual(asked, 201)
        yield* pat.open("/console/requests", "My requests")
        const oz = yield* deciderAt("Oz", "/console/decide", "To decide")
        yield* text(oz.page, "the school opens in May")
        yield* press(pat.page, "Withdraw…")
        yield* fill(pat.page, "Reason", "the school opens next year")
        yield* everyLook(pat, "request-withdrawing")
        yield* press(pat.page, "Withdraw it")
        yield* text(pat.page, "withdrawn")
        yield* everyLook(pat, "request-withdrawn")
        yield* oz.open("/console/decide", "To decide")
        yield* text(oz.page, "No request waits for your signature.")

        // What was decided on it is in the log, with a proof that names nobody.
        yield* pat.open("/console/activity", "My activity")
        yield* text(pat.page, "Decided about you")
        yield* text(pat.page, "organization-request.withdrawn")
        yield* Effect.promise(() => pat.page.click("section[aria-labelledby=about-you] tbody button"))
        yield* text(pat.page, "Copy with its entry")
        yield* everyLook(pat, "decided-about-you")
      }))

    it.effect("Pat asks for an institution by its form", () =>
      Effect.gen(function* () {
        const pat = yield* deciderAt("Pat", "/console/institutions", "Institutions")
        yield* press(pat.page, "Ask for an institution…")
        yield* fill(pat.page, "Name of the institution", "Grove")
        yield* fill(pat.page, "Kind", "museum")
        yield* fill(pat.page, "Its website", "https://grove.example")
        yield* fill(pat.page, "Its domains", "grove.example")
        yield* fill(pat.page, "What it will do here", "to show what grows here")
        yield* fill(pat.page, "Name of the contact", "Gil")
        yield* fill(pat.page, "Their email address", "gil@grove.example")
        yield* fill(pat.page, "Reason", "the museum opens in May")
        yield* everyLook(pat, "request-organization")
        yield* press(pat.page, "Ask for the institution")
        yield* heading(pat.page, "My requests")
        yield* text(pat.page, "Grove")
        const oz = yield* deciderAt("Oz", "/console/decide", "To decide")
        yield* text(oz.page, "the museum opens in May")
      }))

    it.effect("Pat, a plain member, asks for Access to a project that is listed by name alone", () =>
      Effect.gen(function* () {
        const pat = PersonId.make(demoIdentityIds.pat)
        const grove = yield* institution({ name: "Grove" })
        yield* member(grove, pat, "member")
        yield* project(grove, { name: "Herbarium" })
        yield* project(grove, { name: "Old site", state: "withdrawn" })
        const at = yield* deciderAt("Pat", `/console/institutions/${grove}`, "Grove")
        yield* press(at.page, "Ask for Access…")
        yield* choose(at.page, "Project", "Herbarium")
        yield* fillTime(at.page, "Until", "2099-05-01T12:00")
        yield* fill(at.page, "Reason", "writes the labels")
        yield* everyLook(at, "request-access")
        yield* press(at.page, "Ask for Access")
        yield* heading(at.page, "My requests")
        yield* text(at.page, "writes the labels")
        const { sql } = yield* Database
        const [row] = yield* sql<{ ends_at: string }>`
          select fields ->> 'ends_at' as ends_at from requests where author = ${pat} and institution_id = ${grove}`
        const local = yield* Effect.promise(() => at.page.evaluate(() => new Date("2099-05-01T12:00").toISOString()))
        assert.strictEqual(row?.ends_at, local)
        // It waits now, so it is offered no more.
        yield* press(at.page, "Ask for Access…")
        yield* choose(at.page, "Institution", "Grove")
        yield* text(at.page, "There is no project here to which you do not have, or wait for, Access.")
      }))

    it.effect("Pat asks again for an Access whose request has ended, with a reason to begin with", () =>
      Effect.gen(function* () {
        const { page, ...pat } = yield* deciderAt("Pat", "/console/requests", "My requests")
        yield* text(page, "writes the labels")
        const withdraw = yield* Effect.promise(() =>
          page.evaluate(async () => {
            const { items } = await (await fetch("/v1/me/requests")).json()
            const { id } = items.find(({ reason }: { reason: string }) => reason === "writes the labels")
            const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() }
            const body = JSON.stringify({ reason: "not needed this month" })
            return (await fetch(`/v1/me/requests/${id}/withdraw`, { method: "POST", headers, body })).status
          })
        )
        assert.strictEqual(withdraw, 200)
        yield* pat.open("/console/requests", "My requests")
        yield* press(page, "Ask again…")
        yield* text(page, "Herbarium")
        yield* choose(page, "Begin with", "I go on working here")
        yield* everyLook({ page, ...pat }, "request-again")
        yield* press(page, "Ask for Access")
        yield* text(page, "I go on working here after my Access ended")
      }))

    it.effect("Ada brings the end of Pat's Access forward, and the pages say until when it lasts", () =>
      Effect.gen(function* () {
        const fern = `/console/institutions/${demoIdentityIds.fern}`
        const { page, ...ada } = yield* deciderAt("Ada", `${fern}/access/${demoIdentityIds.patAccess}`, "Access of Pat")
        yield* press(page, "Bring the end forward…")
        yield* text(page, "It has no end yet.")
        yield* fillTime(page, "Ends at", "2099-05-01T12:00")
        yield* fill(page, "Reason", "the project ends then")
        yield* everyLook({ page, ...ada }, "access-shorten")
        yield* press(page, "Bring the end forward")
        yield* text(page, "It ends")
        yield* text(page, "the project ends then")
        // A later end takes a request that is reviewed.
        yield* press(page, "Bring the end forward…")
        yield* fillTime(page, "Ends at", "2099-06-01T12:00")
        yield* fill(page, "Reason", "the project goes on")
        yield* press(page, "Bring the end forward")
        yield* text(page, "it ends later only by a request that is reviewed anew")
        yield* press(page, "Cancel")
        yield* ada.open(fern, "Fern")
        yield* text(page, "until")
        const shown = yield* Effect.promise(() =>
          page.$$eval(
            "td",
            (all) => all.map((one) => (one as HTMLElement).innerText).filter((one) => /until/.test(one)),
          )
        )
        assert.lengthOf(shown, 1)
      }))

    it.effect("Pat, who comes to own a project and signs nothing, lands on it", () =>
      Effect.gen(function* () {
        const grove = yield* institution({ name: "Grove of owners" })
        yield* owner(yield* project(grove, { name: "Seed bank" }), PersonId.make(demoIdentityIds.pat))
        const { page } = yield* inConsole("Pat")
        yield* heading(page, "Seed bank")
        yield* press(page, "My requests")
        yield* heading(page, "My requests")
      }))
  },
)
