import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { HeldRollouts } from "../../../schemas/identity/RolloutView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { institution, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/rollouts"
const pageOf = Schema.decodeUnknownSync(HeldRollouts)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Rollouts over HTTP", (it) => {
  it.effect("are held, failed and released once for each key, and listed by pages while they are held", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const fern = yield* institution({ name: "Fern" })
      const ids = [yield* project(fern), yield* project(fern), yield* project(fern)].sort()
      const [one, two, three] = ids
      const decide = (id: string, action: string, headers: Readonly<Record<string, string>> = oz) =>
        send("POST", `${path}/${id}`, headers, { action, reason })

      const headers = { ...oz, ...key() }
      const held = yield* decide(one!, "hold", headers)
      assert.deepStrictEqual(held.body, {
        project_id: one,
        rollout: "hold",
        state: "held",
        version: 2,
        job_id: null,
        changed: true,
      })
      assert.strictEqual((yield* decide(one!, "hold", headers)).text, held.text)
      assert.deepStrictEqual((yield* decide(one!, "hold")).body, { ...held.body, changed: false })
      for (const id of [two!, three!]) assert.strictEqual((yield* decide(id, "fail")).body.rollout, "fail")

      const listed = (query: string) => Effect.map(send("GET", `${path}?${query}`, oz), ({ body }) => pageOf(body))
      const first = yield* listed("limit=2")
      const second = yield* listed(`limit=2&after_id=${first.next_after_id}`)
      assert.deepStrictEqual([...first.items, ...second.items].map(({ project_id }) => project_id), ids)
      assert.isNull(second.next_after_id)
      assert.deepInclude(first.items[0], { institution_name: "Fern", rollout: "hold", state: "held", version: 2 })

      assert.deepInclude((yield* decide(one!, "release")).body, { rollout: null, changed: true })
      assert.deepStrictEqual((yield* listed("limit=5")).items.map(({ project_id }) => project_id), [two!, three!])
      for (const id of [randomUUID(), "nothing"]) {
        assert.deepStrictEqual(codeOf(yield* decide(id, "hold")), [404, "not_found"])
      }
      const withdrawn = yield* decide(yield* project(fern, { state: "withdrawn" }), "hold")
      assert.deepStrictEqual(codeOf(withdrawn), [409, "invalid_state"])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* decide(two!, "release", somebody)), [403, "role_required"])
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
      const records = yield* sql`
        select actor, action, details ->> 'reason' as reason from audit_records
        where subject = ${`project:${one}`} and action like 'rollout.%' order by id`
      assert.deepStrictEqual(
        records,
        ["hold", "release"].map((what) => ({ actor: `person:${operator}`, action: `rollout.${what}`, reason })),
      )
    }))
})
