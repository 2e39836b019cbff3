/** Objects that wait for an operator's decision at the console, in real Chromium. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { heldPerson, hold } from "../../../support/TestHolds.ts"
import { outgoingMail } from "../../../support/TestMails.ts"
import { intakeReject } from "../../../support/TestRejects.ts"
import { reason } from "../../../support/Fixtures.ts"
import { InstitutionId } from "../../../../schemas/BrandedIds.ts"
import { project } from "../../../support/TestIdentity.ts"
import { bearer } from "../../../support/TestTokens.ts"
import { demoIdentityIds } from "../../../../src/embedded/DemoIdentity.ts"
import {
  type AtConsole,
  chooseAtIssuer,
  Chromium,
  everyLook,
  fill,
  heading,
  inConsole,
  press,
  text,
} from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const stage = Layer.merge(staged(), Chromium.layer)

const other = "https://other.example"

/** Loads the page anew as one of an installation whose console has these issuers, too. */
const withIssuers = ({ page }: AtConsole, issuers: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    await page.evaluateOnNewDocument((issuers) => {
      const asked = globalThis.fetch
      globalThis.fetch = async (to, how) => {
        const answer = await asked(to, how)
        if (!answer.url.endsWith("/v1/console/session")) return answer
        const body = await answer.json()
        return Response.json({
          ...body,
          issuers: [...body.issuers, ...issuers.map((issuer) => ({ issuer, name: issuer, sign_in_url: "" }))],
        })
      }
    }, issuers)
    await page.reload()
  })

layer(stage, { excludeTestServices: true, timeout: "4 minutes" })("an operator's word at the console", (it) => {
  it.effect("opens a held installation, with a reason that the audit keeps", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const at = yield* inConsole("Oz")
      yield* text(at.page, "checks are fine")
      const missing = [{ stream: "LIFECYCLE", project_id: "fern", epoch: 1, first: 3, last: 4 }]
      yield* sql`update installation set state = 'held', held_since = now(), held_reason = 'messages_missing',
        missing = ${sql.json(missing)}`
      yield* press(at.page, "Check again")
      yield* text(at.page, "task cli installation")
      const commands = yield* Effect.promise(() =>
        at.page.$$eval(".card code", (all) => all.map((one) => one.textContent))
      )
      assert.isTrue(commands.some((one) => /^npx .* installation /.test(one ?? "")), commands.join())
      yield* everyLook(at, "findings-held")
      yield* press(at.page, "Installation")
      yield* heading(at.page, "Installation")
      yield* text(at.page, "messages that may be revocations are missing on the broker")
      yield* text(at.page, "position 3 to 4 of epoch 1")
      yield* everyLook(at, "installation-held")
      yield* press(at.page, "Open…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "installation-open")
      yield* press(at.page, "Open the installation")
      yield* text(at.page, "Opened after a hold")
      yield* everyLook(at, "installation-opened")
      const records = yield* sql`select details from audit_records where action = 'installation.opened'`
      assert.deepStrictEqual(records, [{ details: { reason, held_reason: "messages_missing" } }])

      // The finding has the button, too.
      yield* sql`update installation set state = 'held', held_since = now(), held_reason = 'messages_missing',
        missing = ${sql.json(missing)}`
      yield* outgoingMail()
      yield* at.open("/console/operations/findings", "Findings")
      yield* text(at.page, "1 in the last 24 hours")
      const buttons = yield* Effect.promise(() =>
        at.page.$$eval("main .card button, main .card a.button", (all) => all.map((one) => one.textContent?.trim()))
      )
      assert.lengthOf(buttons.filter((one) => one === "Open…"), 1, buttons.join())
      assert.include(buttons, "Try the mails again")
      yield* everyLook(at, "findings-hours")
      yield* press(at.page, "Open…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Open the installation")
      yield* Effect.promise(() =>
        at.page.waitForFunction(() =>
          ![...document.querySelectorAll(".card button")].some((one) => one.textContent === "Open…")
        )
      )
      assert.deepStrictEqual(yield* sql`select state from installation`, [{ state: "open" }])
      yield* sql`delete from mails where kind = 'test.kind'`
      yield* at.open("/console/operations/audit?action=installation.opened", "Audit")
      yield* press(at.page, "Proof…")
      yield* text(at.page, "Copy with its record and salt")
      yield* everyLook(at, "audit-proof")
      yield* at.open("/console/activity?action=installation.opened", "My activity")
      yield* press(at.page, "Proof…")
      yield* text(at.page, "Copy with its record and salt")
    }))

  it.effect("discards a message that could not be taken in, and lets another wait once more", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* intakeReject({ accountId: randomUUID() })
      const at = yield* inConsole("Oz", {}, "/console/operations/rejects")
      yield* heading(at.page, "Rejected messages")
      yield* press(at.page, "Wait again…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Wait again")
      yield* text(at.page, "Every message was taken in.")
      yield* at.open("/console/operations/rejects?state=waiting", "Rejected messages")
      yield* press(at.page, "Its audit")
      yield* heading(at.page, "Audit")
      yield* text(at.page, "intake-reject.retried")
      const malformed = yield* intakeReject({ payload: `{"type":"email.sent","data":` })
      yield* at.open("/console/operations/rejects", "Rejected messages")
      yield* press(at.page, "28 bytes")
      yield* everyLook(at, "rejects")
      yield* press(at.page, "Discard…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Discard")
      yield* text(at.page, "Every message was taken in.")
      const [row] = yield* sql`select state from intake_rejects where id = ${malformed}::uuid`
      assert.deepStrictEqual(row, { state: "resolved" })
    }))

  it.effect("tries a failed mail again, and gives another one up", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const first = yield* outgoingMail()
      const at = yield* inConsole("Oz", {}, "/console/operations/mails")
      yield* heading(at.page, "Mails")
      yield* text(at.page, "a***@fern.example")
      yield* text(at.page, "550 5.1.1 no such user")
      yield* everyLook(at, "mails")
      yield* press(at.page, "Its audit")
      yield* heading(at.page, "Audit")
      assert.strictEqual(new URL(at.page.url()).search, `?subject=${first}`)
      yield* at.open("/console/operations/mails", "Mails")
      yield* press(at.page, "Try again…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Try again")
      yield* text(at.page, "No mail has failed.")
      const second = yield* outgoingMail()
      yield* at.open("/console/operations/mails", "Mails")
      yield* press(at.page, "Forget…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Forget")
      yield* text(at.page, "No mail has failed.")
      const rows = yield* sql`select id::text as id, state from mails where kind = 'test.kind' order by id`
      assert.deepStrictEqual(rows, [{ id: first, state: "pending" }, { id: second, state: "dropped" }])
    }))

  it.effect("reads whom identity providers hold, by which word, and releases a person", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const early = new Date(Date.now() - 60_000)
      const held = yield* heldPerson({ kind: "purged", since: early, transmitter: "https://gone.example" })
      yield* hold(held, { transmitter: "https://other.example" })
      const at = yield* inConsole("Oz", {}, "/console/operations/findings")
      yield* text(at.page, "People held by a provider that SIGNAL_TRANSMITTERS does not name any more: 1")
      yield* press(at.page, "Look at the held people")
      yield* heading(at.page, "Held people")
      yield* text(at.page, "Henry Held")
      yield* text(at.page, "https://gone.example")
      yield* text(at.page, "account purged")
      yield* everyLook(at, "held-people")
      // The first row is the later hold, by another provider: the release ends the purged one, too.
      yield* press(at.page, "Release…")
      yield* text(at.page, "its subject may be another person's by now")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "held-people-release")
      yield* press(at.page, "Release")
      yield* text(at.page, "No identity provider holds a person.")
      assert.deepStrictEqual(yield* sql`select status from people where id = ${held}`, [{ status: "active" }])
      yield* at.open(`/console/operations/audit?subject=person:${held}`, "Audit")
      yield* text(at.page, "person.released")
    }))

  it.effect("holds the rollout of a project after a fresh sign-in, which loses no word, and releases it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [{ id }] = (yield* sql<{ id: string }>`
        select id from projects where state <> 'withdrawn' order by id limit 1`) as [{ id: string }]
      const opened = yield* inConsole("Oz", {}, "/console/operations/rollouts")
      // The browser names the answer that asks for a fresh sign-in.
      const at: AtConsole = {
        ...opened,
        get complaints() {
          return opened.complaints.filter((one) => !one.includes("status of 401"))
        },
      }
      yield* sql`insert into identities (issuer, subject, person_id, linked_at)
        values (${other}, 'oz', ${demoIdentityIds.oz}, now())`
      yield* withIssuers(at, [other, "https://unknown.example"])
      yield* heading(at.page, "Rollouts")
      yield* text(at.page, "No rollout is held.")
      yield* press(at.page, "Hold a rollout…")
      yield* fill(at.page, "Id of the project", id)
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "rollouts-hold")
      // A header comes before the cookie: the API is asked with a token of an older sign-in.
      const old = yield* bearer(demoIdentityIds.oz, { authTime: Math.floor(Date.now() / 1_000) - 301 })
      yield* Effect.promise(() => at.page.setExtraHTTPHeaders(old))
      yield* press(at.page, "Hold")
      yield* text(at.page, "Your last sign-in was too long ago for this.")
      // A person may step up at each issuer that names them, and at no other one.
      yield* text(at.page, `Sign in with ${other}`)
      const ways = yield* Effect.promise(() =>
        at.page.$$eval(
          "dialog[open] a",
          (all) =>
            all.map((one) => new URL((one as HTMLAnchorElement).href).searchParams).map(
              (query) => [query.get("issuer"), query.get("max_age"), query.get("return")] as const,
            ),
        )
      )
      assert.deepStrictEqual(ways.slice(1), [[other, "300", "/console/operations/rollouts"]])
      // The first way is the issuer of the session.
      assert.deepStrictEqual(ways[0], [
        new URL("/dev/issuer", at.page.url()).href,
        "300",
        "/console/operations/rollouts",
      ])
      yield* everyLook(at, "step-up")
      assert.deepStrictEqual(yield* sql`select from projects where rollout is not null`, [])
      yield* Effect.promise(() => at.page.setExtraHTTPHeaders({}))
      // The dialog lies over the form's, and has the focus on its link.
      yield* Effect.promise(() => at.page.keyboard.press("Enter"))
      yield* chooseAtIssuer(at.page, "Oz")
      yield* heading(at.page, "Rollouts")
      yield* press(at.page, "Hold")
      yield* text(at.page, "Release…")
      yield* everyLook(at, "rollouts")
      yield* press(at.page, "Fail…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "rollouts-fail")
      yield* press(at.page, "Fail")
      yield* text(at.page, "The rollout has failed.")
      yield* Effect.promise(() => at.page.waitForFunction(() => /✕ failed/.test(document.body.innerText)))
      yield* press(at.page, "Its audit")
      yield* heading(at.page, "Audit")
      yield* text(at.page, "rollout.fail")
      yield* at.open("/console/operations/rollouts", "Rollouts")
      yield* press(at.page, "Release…")
      yield* fill(at.page, "Reason", reason)
      yield* press(at.page, "Release")
      yield* text(at.page, "No rollout is held.")
      const records = yield* sql`
        select action, details ->> 'reason' as reason from audit_records
        where action like 'rollout.%' and outcome = 'done' order by id`
      const done = ["rollout.hold", "rollout.fail", "rollout.release"]
      assert.deepStrictEqual(records, done.map((action) => ({ action, reason })))
    }))

  it.effect("sends a failed job again, has the provider asked for an unknown outcome, and names a client that has gone", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const site = yield* project(InstitutionId.make(demoIdentityIds.fern), { name: "Fern Mirror" })
      const job = Effect.fnUntraced(function* (kind: string, state: string) {
        const id = randomUUID()
        yield* sql`insert into provider_jobs (id, kind, project_id, state, reference, created_at, updated_at, not_before,
            last_error)
          values (${id}::uuid, ${kind}, ${site}, ${state}, ${`reference of ${id}`}, now(), now(), now(), 'timeout')`
        return id
      })
      const state = (id: string) => sql`select state from provider_jobs where id = ${id}::uuid`
      const failed = yield* job("client.create", "failed")
      const at = yield* inConsole("Oz", {}, "/console/operations/jobs")
      yield* heading(at.page, "Jobs")
      yield* text(at.page, "Fern Mirror")
      yield* press(at.page, "Send again…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "job-again")
      yield* press(at.page, "Send again")
      yield* text(at.page, "No job failed, and every outcome is known.")
      assert.deepStrictEqual(yield* state(failed), [{ state: "pending" }])

      const unknown = yield* job("client.create", "ambiguous")
      yield* at.open("/console/operations/jobs", "Jobs")
      yield* press(at.page, "Ask the provider…")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "job-asked")
      yield* press(at.page, "Ask the provider")
      yield* text(at.page, "No job failed, and every outcome is known.")
      // The provider knows of no such client: the write is sent once more.
      assert.deepStrictEqual(yield* state(unknown), [{ state: "pending" }])

      const disabling = yield* job("client.disable", "failed")
      yield* at.open("/console/operations/jobs", "Jobs")
      yield* everyLook(at, "jobs")
      yield* press(at.page, "Name the client…")
      yield* fill(at.page, "Client ID", "client-that-has-gone")
      yield* fill(at.page, "Reason", reason)
      yield* everyLook(at, "job-repair")
      yield* press(at.page, "Name the client")
      yield* text(at.page, "No job failed, and every outcome is known.")
      assert.deepStrictEqual(yield* state(disabling), [{ state: "effective" }])
      const records = yield* sql`
        select actor, details ->> 'reason' as reason from audit_records
        where subject = any(${[failed, unknown, disabling].map((id) => `job:${id}`)}::text[]) order by id`
      assert.deepStrictEqual(records, Array(3).fill({ actor: `person:${demoIdentityIds.oz}`, reason }))
      yield* press(at.page, "Its audit")
      yield* heading(at.page, "Audit")
      const subject = new URL(at.page.url()).searchParams.get("subject")!
      assert.include([failed, unknown, disabling], subject)
      yield* text(at.page, `job:${subject}`)
    }))

  it.effect("a sponsor has none of these pages", () =>
    Effect.gen(function* () {
      const at = yield* inConsole("Sam", {}, "/console/operations/installation")
      yield* heading(at.page, "There is no such page")
      const status = yield* Effect.promise(() =>
        at.page.evaluate(async () => (await fetch("/v1/operations/installation")).status)
      )
      assert.strictEqual(status, 403)
    }))
})
