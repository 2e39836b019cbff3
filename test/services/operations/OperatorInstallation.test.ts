import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { InstallationState } from "../../../schemas/identity/InstallationView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/installation"
const stateOf = Schema.decodeUnknownSync(InstallationState)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("The installation over HTTP", (it) => {
  it.effect("says why it is held, and opens once on an operator's word", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const before = stateOf((yield* send("GET", path, oz)).body)
      assert.deepInclude(before, { state: "open", held_since: null, held_reason: null, says: null, lost_since: null })
      const same = yield* send("POST", `${path}/open`, oz, { reason })
      assert.deepStrictEqual([same.status, same.body], [200, before], "an open installation is left as it is")

      const since = new Date(Date.now() - 60_000)
      const ofProject = { stream: "LIFECYCLE", project_id: "p", epoch: 1, first: 3, last: 4 }
      const ofStream = { stream: "TRANSFERS", first: 8, last: 8 }
      yield* sql`update installation set state = 'held', held_since = ${since}, held_reason = 'messages_missing',
        missing = ${sql.json([ofProject, ofStream])}`
      const held = stateOf((yield* send("GET", path, oz)).body)
      assert.deepInclude(held, {
        state: "held",
        epoch: before.epoch,
        held_reason: "messages_missing",
        says: "messages that may be revocations are missing on the broker",
        held_since: since.toISOString(),
      })
      assert.include(held.remedy, "recovery goes on by itself")
      assert.deepStrictEqual(held.missing, [ofProject, { ...ofStream, project_id: null, epoch: null }])

      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
      assert.deepStrictEqual(codeOf(yield* send("POST", `${path}/open`, somebody, { reason })), [403, "role_required"])

      const headers = { ...oz, ...key() }
      const opened = yield* send("POST", `${path}/open`, headers, { reason })
      assert.deepInclude(stateOf(opened.body), { state: "open", held_reason: null, missing: [], remedy: null })
      assert.strictEqual((yield* send("POST", `${path}/open`, headers, { reason })).text, opened.text)
      const records = yield* sql`
        select actor, subject, details from audit_records where action = 'installation.opened' order by id`
      assert.deepStrictEqual(records, [{
        actor: `person:${operator}`,
        subject: `installation:${before.epoch}`,
        details: { reason, held_reason: "messages_missing" },
      }])
    }))
})
