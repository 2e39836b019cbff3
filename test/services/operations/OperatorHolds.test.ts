import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { PersonHolds } from "../../../schemas/identity/PersonHoldView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { listHolds } from "../../../services/signals/ReleasePerson.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { heldPerson, hold } from "../../support/TestHolds.ts"
import { access, institution, person, project } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/person-holds"
const pageOf = Schema.decodeUnknownSync(PersonHolds)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Holds of people over HTTP", (it) => {
  it.effect("are listed those of people held last first, page by page, each hold once", () =>
    Effect.gen(function* () {
      const oz = yield* bearer(yield* person({ operator: true }))
      const [early, late] = [new Date(Date.now() - 60_000), new Date()]
      const ann = yield* heldPerson({ since: early, kind: "purged" })
      // Two at one time, of which one is held by two providers.
      const [bea, cat] = [yield* heldPerson({ since: late }), yield* heldPerson({ since: late })].sort()
      yield* hold(bea!, { since: late, transmitter: "https://other.example/a b" })
      const listed = Effect.fnUntraced(function* (query: string) {
        const answer = yield* send("GET", `${path}?${query}`, oz)
        assert.strictEqual(answer.status, 200, answer.text)
        return pageOf(answer.body)
      })
      const items: Array<PersonHolds["items"][number]> = []
      let after: string | null = ""
      for (let pages = 0; after !== null; pages++) {
        assert.isBelow(pages, 5)
        const page: PersonHolds = yield* listed(
          `limit=1${after === "" ? "" : `&after_id=${encodeURIComponent(after)}`}`,
        )
        items.push(...page.items)
        after = page.next_after_id
      }
      assert.deepStrictEqual(
        items.map(({ person_id, transmitter }) => [person_id, transmitter]),
        [
          [bea, "https://id.example"],
          [bea, "https://other.example/a b"],
          [cat, "https://id.example"],
          [ann, "https://id.example"],
        ],
      )
      assert.deepStrictEqual(items.at(-1), {
        person_id: ann,
        transmitter: "https://id.example",
        kind: "purged",
        told_at: early.toISOString(),
        since: early.toISOString(),
      })
      assert.deepStrictEqual(codeOf(yield* send("GET", `${path}?after_id=1`, oz)), [422, null])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* send("GET", path, somebody)), [403, "role_required"])
    }))

  it.effect("end by an operator's word: once for each key, by a fresh sign-in, with a record, and products hear of it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const fern = yield* institution()
      const ann = yield* heldPerson({ kind: "purged" })
      yield* access(fern, yield* project(fern), ann)
      yield* hold(ann, { transmitter: "https://other.example" })
      const release = (id: string, headers: Readonly<Record<string, string>>) =>
        send("POST", `${path}/${id}/release`, headers, { reason })
      const status = sql`select status, held_under from people where id = ${ann}`

      const old = yield* bearer(operator, { authTime: Math.floor(Date.now() / 1_000) - 301 })
      assert.deepStrictEqual(codeOf(yield* release(ann, old)), [401, "insufficient_user_authentication"])
      const somebody = yield* bearer(yield* person())
      assert.deepStrictEqual(codeOf(yield* release(ann, somebody)), [403, "role_required"])
      yield* sql`update installation set state = 'held', held_reason = 'messages_missing', held_since = now()`
      assert.deepStrictEqual(codeOf(yield* release(ann, oz)), [503, "held"])
      yield* sql`update installation set state = 'open', held_reason = null, held_since = null`
      assert.deepStrictEqual(yield* status, [{ status: "suspended", held_under: "active" }])

      const headers = { ...oz, ...key() }
      const released = yield* release(ann, headers)
      assert.deepStrictEqual(released.body, { person_id: ann, holds: 2, status: "active" })
      assert.strictEqual((yield* release(ann, headers)).text, released.text)
      assert.deepStrictEqual(yield* status, [{ status: "active", held_under: null }])
      for (const id of [ann, "nobody"]) assert.deepStrictEqual(codeOf(yield* release(id, oz)), [404, "not_found"])

      assert.deepStrictEqual(
        yield* sql`
          select r.actor, r.details, l.record_id is not null as logged from audit_records r
          left join log_pending l on l.record_id = r.id
          where r.action = 'person.released' and r.subject = ${`person:${ann}`}`,
        [{
          actor: `person:${operator}`,
          details: {
            holds: 2,
            ended: "purged by https://id.example, disabled by https://other.example",
            reason,
          },
          logged: true,
        }],
      )
      assert.deepStrictEqual(
        yield* sql`
          select kind, payload -> 'reason_admin' ->> 'en' as reason from lifecycle_events
          where person_id = ${ann} and kind like 'account-%' order by position`,
        [
          // The Access of a person who is held came with this.
          { kind: "account-disabled", reason: "ACCESS_GRANTED_BY_DIRECTORY" },
          { kind: "account-enabled", reason: "PERSON_ENABLED_BY_OPERATOR" },
        ],
      )
    }))

  it.effect("of an account that was merged into the operator are ended by another operator only", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [operator, other] = [yield* person({ operator: true }), yield* person({ operator: true })]
      const former = yield* heldPerson()
      yield* sql`update people set merged_into = ${operator} where id = ${former}`
      const release = (headers: Readonly<Record<string, string>>) =>
        send("POST", `${path}/${former}/release`, headers, { reason })
      assert.deepStrictEqual(codeOf(yield* release(yield* bearer(operator))), [403, "four_eyes_required"])
      const left = sql`select kind from person_holds where person_id = ${former}`
      assert.deepStrictEqual(yield* left, [{ kind: "disabled" }])
      assert.strictEqual((yield* release(yield* bearer(other))).status, 200)
      assert.deepStrictEqual(yield* left, [{ kind: "released" }])
    }))

  it.effect("of a person whom the directory disabled meanwhile end without enabling the person", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const oz = yield* bearer(yield* person({ operator: true }))
      const ann = yield* heldPerson()
      yield* sql`update people set held_under = 'disabled', status = 'disabled' where id = ${ann}`
      const { body } = yield* send("POST", `${path}/${ann}/release`, oz, { reason })
      assert.deepStrictEqual(body, { person_id: ann, holds: 1, status: "disabled" })
    }))

  it.effect("a page reads few rows among 20,000 holds", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      yield* owner`
        insert into person_holds (person_id, transmitter, kind, told_at, changed_at)
        select 'many' || n, 'https://id.example', case n % 3 when 0 then 'disabled' else 'released' end, now(),
          now() - n * interval '1 second' from generate_series(1, 20000) n`
      yield* owner`vacuum analyze person_holds`
      const first = yield* listHolds(sql, 10)
      for (const after of [null, first.at(-1)!]) {
        const [rows] = yield* rowsRead(sql, listHolds(sql, 10, after))
        assert.isAtMost(rows.get("person_holds") ?? 0, 30, after === null ? "the first page" : "the second")
      }
    }))
})
