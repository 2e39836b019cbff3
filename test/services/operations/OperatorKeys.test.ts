import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SigningKeyRing } from "../../../schemas/identity/SigningKeyView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/signing-keys"
const ringOf = Schema.decodeUnknownSync(SigningKeyRing)
const statesOf = ({ items }: SigningKeyRing) => items.map(({ state }) => state)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Signing keys over HTTP", (it) => {
  it.effect("are announced once for each key, activated, and taken out of use, with the person and the reason", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const none = yield* send("GET", path, oz)
      assert.deepStrictEqual(none.body, { items: [], pins: [], transition: null })
      assert.deepStrictEqual(codeOf(yield* send("POST", `${path}/activate`, oz, { reason })), [409, "invalid_state"])

      const headers = { ...oz, ...key() }
      const not_before = "2031-05-06T07:08:09+02:00"
      const told = yield* send("POST", `${path}/announce`, headers, { reason, not_before })
      assert.strictEqual(told.status, 200, told.text)
      const announced = ringOf(told.body)
      assert.deepStrictEqual(statesOf(announced), ["active", "announced", "announced"])
      const [first, second] = announced.items
      assert.deepInclude(announced.transition, {
        successor: second!.kid,
        not_before: "2031-05-06T05:08:09.000Z",
        untold: 0,
        left: 0,
        waiting: [],
      })
      assert.deepStrictEqual(announced.pins, announced.items.map(({ kid }) => kid))
      assert.strictEqual((yield* send("POST", `${path}/announce`, headers, { reason, not_before })).text, told.text)
      const again = yield* send("POST", `${path}/announce`, oz, { reason })
      assert.deepStrictEqual(codeOf(again), [409, "invalid_state"])
      assert.include(again.body.detail, "is under way")

      const published = yield* send("POST", `${path}/publish`, oz, { reason })
      assert.deepStrictEqual(statesOf(ringOf(published.body)), ["active", "published", "announced"])
      const publishedTwice = yield* send("POST", `${path}/publish`, oz, { reason })
      assert.deepStrictEqual([...codeOf(publishedTwice), publishedTwice.body.state], [
        409,
        "invalid_state",
        "published",
      ])
      const early = yield* send("POST", `${path}/${first!.kid}/retire`, oz, { reason })
      assert.deepStrictEqual([...codeOf(early), early.body.state], [409, "invalid_state", "active"])

      const activated = ringOf((yield* send("POST", `${path}/activate`, oz, { reason, force: true })).body)
      assert.isAtMost(Date.parse(activated.transition!.deadline_at), Date.now())

      const stolen = yield* send("POST", `${path}/${first!.kid}/compromise`, oz, { reason })
      assert.deepStrictEqual(statesOf(ringOf(stolen.body)), ["compromised", "active", "announced", "announced"])
      const twice = yield* send("POST", `${path}/${first!.kid}/compromise`, oz, { reason })
      assert.deepStrictEqual([...codeOf(twice), twice.body.state], [409, "invalid_state", "compromised"])
      const unknown = yield* send("POST", `${path}/unknown/compromise`, oz, { reason })
      assert.deepStrictEqual(codeOf(unknown), [404, "not_found"])

      const records = yield* sql`
        select actor, action, subject, details from audit_records
        where action like 'signing-key.%' and outcome = 'done' order by id`
      const by = { actor: `person:${operator}`, details: { reason } }
      assert.deepStrictEqual(records, [
        { ...by, action: "signing-key.announce", subject: `signing-key:${second!.kid}` },
        { ...by, action: "signing-key.publish", subject: `signing-key:${second!.kid}` },
        { ...by, action: "signing-key.force", subject: `signing-key:${second!.kid}` },
        { ...by, action: "signing-key.compromise", subject: `signing-key:${first!.kid}` },
      ])
    }))

  it.effect("a key is retired once it has verified for seven days, and then only once", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const oz = yield* bearer(yield* person({ operator: true }))
      const { items } = ringOf((yield* send("GET", path, oz)).body)
      const { kid } = items.find(({ state }) => state === "announced")!
      const since = (days: number) =>
        sql`update signing_keys set state = 'retiring', changed_at = now() - make_interval(days => ${days})
          where kid = ${kid}`
      const retire = send("POST", `${path}/${kid}/retire`, oz, { reason })
      yield* since(6)
      const early = yield* retire
      assert.deepStrictEqual(codeOf(early), [409, "invalid_state"])
      assert.include(early.body.detail, "it still verifies")
      yield* since(8)
      const retired = yield* retire
      assert.strictEqual(ringOf(retired.body).items.find((one) => one.kid === kid)!.state, "retired", retired.text)
      const [row] = yield* sql`select private_key from signing_keys where kid = ${kid}`
      assert.deepStrictEqual({ ...row }, { private_key: null })
      assert.deepStrictEqual(codeOf(yield* retire), [409, "invalid_state"])
      assert.deepStrictEqual(codeOf(yield* send("POST", `${path}/unknown/retire`, oz, { reason })), [404, "not_found"])
    }))

  it.effect("a stolen key needs a sign-in of five minutes, and an operator", () =>
    Effect.gen(function* () {
      const oz = yield* person({ operator: true })
      const { items } = ringOf((yield* send("GET", path, yield* bearer(oz))).body)
      const at = `${path}/${items.find(({ state }) => state === "active")!.kid}/compromise`
      const old = yield* bearer(oz, { authTime: Math.floor(Date.now() / 1_000) - 301 })
      const refused = yield* send("POST", at, old, { reason })
      assert.deepStrictEqual(codeOf(refused), [401, "insufficient_user_authentication"])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* send("POST", at, somebody, { reason })), [403, "role_required"])
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
      assert.deepStrictEqual(ringOf((yield* send("GET", path, yield* bearer(oz))).body).items, items)
    }))
})
