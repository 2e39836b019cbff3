/** Operations whose command recognises its caller itself: a cached token lets no ended caller in. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { randomUUID } from "node:crypto"
import { Api } from "../../../../schemas/api/Api.ts"
import { RecognisedByCommand } from "../../../../schemas/api/ManagementApi.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { as, type Headers, send } from "./IdentityClient.ts"
import { catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { stage } from "./IdentityStage.ts"

const marked = new Set<string>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    if (Context.get(endpoint.annotations, RecognisedByCommand)) marked.add(`${group.identifier}.${endpoint.identifier}`)
  },
})
const cases = catalogue.filter(({ operation }) => marked.has(operation))

/** Puts the token into the program's cache, by an operation that recognises its caller. */
const seen = (headers: Headers) =>
  Effect.map(send("GET", "/v1/me?ordinary", headers), ({ status }) => assert.strictEqual(status, 200))

/** The ways in which a caller's right ends, and how each is undone. */
const endings = Effect.map(Database, ({ sql }) => ({
  suspended: (id: string) =>
    [
      sql`update people set status = 'suspended' where id = ${id}`,
      sql`update people set status = 'active' where id = ${id}`,
    ] as const,
  "signed out everywhere": (id: string) =>
    [
      sql`insert into session_floors (person_id, before, except_issuer, except_sid)
      values (${id}, ${new Date(Date.now() + 60_000)}, 'none', null)`,
      sql`delete from session_floors where person_id = ${id}`,
    ] as const,
}))

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Recognised by the command", (it) => {
  it.effect("a caller ended since the last request is refused first, and nothing is done", () =>
    Effect.gen(function* () {
      assert.sameMembers(cases.map(({ operation }) => operation), [...marked])
      const fixture = yield* stage
      for (const one of cases) {
        const who = fixture.people[one.by]
        const asked = yield* one.asked(fixture, who)
        const operation = operationOf(one)
        const headers = { ...(yield* as(who)), "idempotency-key": randomUUID() }
        const sent = (body: unknown = asked.body) =>
          send(operation.method, pathOf(operation, asked), { ...asked.headers, ...headers }, body)
        for (const [how, ending] of Object.entries(yield* endings)) {
          const [end, undo] = ending(who)
          for (const body of [asked.body, { reason: 1 }]) {
            yield* seen(headers)
            yield* end
            assert.deepStrictEqual(codeOf(yield* sent(body)), [401, "invalid_token"], `${one.operation} ${how}`)
            yield* undo
          }
        }
        yield* seen(headers)
        const answer = yield* sent()
        assert.strictEqual(answer.status, one.status, `${one.operation} ${answer.text}`)
        assert.notProperty(answer.headers, "idempotency-replayed")
        const again = yield* sent()
        assert.deepStrictEqual([again.text, again.headers["idempotency-replayed"]], [answer.text, "true"])
      }
    }))

  it.effect("a merged person acts as the person it was merged into", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [one, other] = [yield* person(), yield* person()]
      const headers = { ...(yield* as(one)), "idempotency-key": randomUUID() }
      yield* seen(headers)
      yield* sql`update people set merged_into = ${other} where id = ${one}`
      const fixture = yield* stage
      const asking = catalogue.find(({ operation }) => operation === "requests.createOrganizationRequest")!
      const { body } = yield* asking.asked(fixture, other)
      const answer = yield* send("POST", "/v1/me/organization-requests", headers, body)
      assert.strictEqual(answer.status, 201, answer.text)
      const { request_id } = JSON.parse(answer.text)
      const authors = yield* sql`select author from requests where id = ${request_id}::uuid`
      assert.deepStrictEqual(authors.map((row) => ({ ...row })), [{ author: other }])
      const receipts = yield* sql`select from idempotency_receipts where principal = ${`person:${other}`}`
      assert.lengthOf(receipts, 1)
    }))
})
