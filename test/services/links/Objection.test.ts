import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomBytes } from "node:crypto"
import { linkNoticeKind, requestTemplates } from "../../../services/requests/RequestMail.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import { day, hour, timed } from "../../support/Fixtures.ts"
import { issuer, person } from "../../support/TestIdentity.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { codeOf, fire, fixture, requestRow, services, sign } from "../decisions/RequestFixture.ts"
import { ask, asked, mailsAbout, noticed, prove } from "./LinkSteps.ts"

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("The day to object to a link", (it) => {
  it.effect("begins when the notice has been sent, however late", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const [one, other] = [yield* person(), yield* person()]
      const link = yield* ask(one, (yield* prove(one, yield* tokenFor(other))).proof_id)
      const state = Effect.map(requestRow(link.link_request_id), (row) => row.state)
      yield* TestClock.adjust(2 * day)
      // The mail server is away: neither an approval nor time alone makes the link effective.
      yield* sign(link, "operator", w.oz)
      assert.strictEqual(yield* state, "pending_review")
      yield* TestClock.adjust(day)
      yield* fire
      assert.strictEqual(yield* state, "pending_review")
      yield* TestClock.adjust(hour)
      const [notice] = (yield* requestTemplates(new URL("https://portal.example"))).filter(
        ({ kind }) => kind === linkNoticeKind,
      )
      const mail = { id: "m", subjectId: link.link_request_id, recipient: "", args: {} }
      assert.include((yield* notice!.render(mail))!.text, "nothing takes effect before 2026-03-05 13:00 UTC")
      yield* noticed(link.link_request_id)
      yield* TestClock.adjust(23 * hour)
      yield* fire
      yield* TestClock.adjust(hour - 1)
      yield* fire
      assert.strictEqual(yield* state, "pending_review")
      yield* TestClock.adjust(1)
      yield* fire
      assert.strictEqual(yield* state, "linked")

      // A notice that cannot be delivered delays the link by a day, no longer.
      const [next, lost] = [yield* person(), yield* person()]
      const second = yield* ask(next, (yield* prove(next, yield* tokenFor(lost))).proof_id)
      yield* sign(second, "operator", w.oz)
      yield* TestClock.adjust(hour)
      yield* noticed(second.link_request_id, "failed")
      yield* TestClock.adjust(23 * hour)
      yield* fire
      assert.strictEqual((yield* requestRow(second.link_request_id)).state, "linked")
    })))

  it.effect("begins again after a restore, which may have lost an objection, with a new notice", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const { owner: sql } = yield* Database
      const [one, other, silent] = [yield* person(), yield* person(), yield* person({ email_verified: false })]
      const link = yield* asked(one, other)
      const untold = yield* ask(one, (yield* prove(one, yield* tokenFor(silent))).proof_id)
      for (const each of [link, untold]) yield* sign(each, "operator", w.oz)
      const states = Effect.map(
        Effect.all([requestRow(link.link_request_id), requestRow(untold.link_request_id)]),
        (rows) => rows.map((row) => row.state),
      )
      yield* TestClock.adjust(day - 1)
      // As Recovery opens the installation.
      yield* sql`update installation set opened_at = ${new Date(yield* Clock.currentTimeMillis)}`
      yield* TestClock.adjust(hour)
      yield* fire
      assert.deepStrictEqual(yield* states, ["pending_review", "pending_review"])
      assert.lengthOf(yield* mailsAbout(link.link_request_id), 2)
      yield* noticed(link.link_request_id)
      yield* TestClock.adjust(day - hour)
      yield* fire
      assert.deepStrictEqual(yield* states, ["pending_review", "linked"])
      yield* TestClock.adjust(hour)
      yield* fire
      assert.deepStrictEqual(yield* states, ["linked", "linked"])
      assert.lengthOf(yield* mailsAbout(link.link_request_id), 2)
      yield* sql`update installation set opened_at = null`
    })))

  it.effect("ends in a link for the longest subject that a proof accepts", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const one = yield* person()
      const { mintAccessToken } = yield* EmbeddedIssuer
      const named = (subject: string) =>
        Effect.flatMap(mintAccessToken({ issuer, subject, clientId: "portal" }), (token) => prove(one, token))
      const longest = randomBytes(2_000).toString("base64url").slice(0, 2_600 - issuer.length)
      assert.strictEqual(yield* codeOf(named(`${longest}x`)), "HTTPValidationError")
      const link = yield* ask(one, (yield* named(longest)).proof_id)
      yield* sign(link, "operator", w.oz)
      yield* TestClock.adjust(day)
      yield* fire
      assert.strictEqual((yield* requestRow(link.link_request_id)).state, "linked")
    })))
})
