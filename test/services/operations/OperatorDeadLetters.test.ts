import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { DeadLetterPage } from "../../../schemas/identity/DeadLetterView.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../services/platform/Ids.ts"
import { DeadLetters } from "../../../services/webhooks/DeadLetters.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { uuid } from "../../support/DirectoryLines.ts"
import { codeOf, day, reason } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import { deadLetter, webhook } from "../../support/TestDeadLetters.ts"
import { person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { bearer } from "../../support/TestTokens.ts"
import { key, send } from "../../src/http/identity/IdentityClient.ts"

const path = "/v1/operations/dead-letters"
const pageOf = Schema.decodeUnknownSync(DeadLetterPage)

const hook = Effect.fnUntraced(function* (deleted = false) {
  const id = WebhookId.make(randomUUID())
  yield* webhook(id, deleted)
  return id
})

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Dead letters over HTTP", (it) => {
  it.effect("are listed over all accounts, newest first, by filters and pages", () =>
    Effect.gen(function* () {
      const oz = yield* bearer(yield* person({ operator: true }))
      const [one, gone] = [yield* hook(), yield* hook(true)]
      const now = Date.now()
      const letters: Array<string> = []
      for (const days of [3, 2, 1]) letters.unshift(yield* deadLetter(one, undefined, leastIdAt(now - days * day)))
      const lost = yield* deadLetter(gone, undefined, leastIdAt(now - day / 2))
      const listed = Effect.fnUntraced(function* (query: string) {
        const answer = yield* send("GET", `${path}?${query}`, oz)
        assert.strictEqual(answer.status, 200, answer.text)
        return pageOf(answer.body)
      })
      const idsOf = ({ items }: DeadLetterPage) => items.map(({ delivery_id }) => delivery_id)

      const first = yield* listed(`account_id=${uuid(1)}&limit=2`)
      assert.deepStrictEqual(idsOf(first), [lost, letters[0]])
      assert.deepStrictEqual(first.items.map((item) => item.webhook_deleted), [true, false])
      assert.deepInclude(first.items[1], {
        account_id: AccountId.make(uuid(1)),
        webhook_id: one,
        event_type: "email.sent",
        response_status: 503,
        endpoint_url: "https://hooks.example/x",
      })
      const second = yield* listed(`account_id=${uuid(1)}&limit=2&after_id=${first.next_after_id}`)
      assert.deepStrictEqual([idsOf(second), second.next_after_id], [letters.slice(1), null])
      assert.deepStrictEqual(idsOf(yield* listed(`webhook_id=${one}&event_type=email.sent`)), letters)
      for (const none of ["event_type=email.opened", "account_id=nobody", `account_id=${uuid(2)}`]) {
        assert.deepStrictEqual(idsOf(yield* listed(`webhook_id=${one}&${none}`)), [], none)
      }
      const since = new Date(now - 2.5 * day).toISOString()
      const until = new Date(now - 1.5 * day).toISOString()
      assert.deepStrictEqual(idsOf(yield* listed(`webhook_id=${one}&since=${since}&until=${until}`)), [letters[1]])
    }))

  it.effect("a span is counted, then replayed once for each key, and audited with the person and the reason", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const [one, gone] = [yield* hook(), yield* hook(true)]
      const now = Date.now()
      for (const days of [3, 2, 1]) yield* deadLetter(one, undefined, leastIdAt(now - days * day))
      yield* deadLetter(gone)
      const since = new Date(now - 2.5 * day).toISOString()

      const counted = yield* send("GET", `${path}/replay?webhook_id=${one}&since=${since}`, oz)
      assert.deepStrictEqual([counted.status, counted.body], [200, { deliveries: 2 }])
      const jobs = sql<{ args: { webhook_id: WebhookId; status: string } }>`
        select args from jobs where kind = 'webhooks.replay' and args->>'webhook_id' = ${one}`
      assert.lengthOf(yield* jobs, 0, "counting starts nothing")

      const headers = { ...oz, ...key() }
      const body = { webhook_id: one, since, reason }
      const told = [
        yield* send("POST", `${path}/replay`, headers, body),
        yield* send("POST", `${path}/replay`, headers, body),
      ]
      const { asked_at } = told[0]!.body
      for (const { body, status } of told) assert.deepStrictEqual([status, body], [200, { deliveries: 2, asked_at }])
      // A letter that is given up after the replay was asked for is no part of it.
      yield* deadLetter(one, undefined, leastIdAt(now - 1.5 * day))
      const died = new Date(Date.parse(asked_at) + 1)
      yield* sql`update dead_letters set died_at = ${died}
        where webhook_id = ${one}::uuid and delivery_id = ${leastIdAt(now - 1.5 * day)}::uuid`
      const left = (query: string) => send("GET", `${path}/replay?webhook_id=${one}&since=${since}${query}`, oz)
      assert.deepStrictEqual((yield* left(`&asked_at=${asked_at}`)).body, { deliveries: 2 })
      assert.deepStrictEqual((yield* left("")).body, { deliveries: 3 })
      const [job, ...others] = yield* jobs
      assert.deepStrictEqual(others, [])
      assert.deepInclude(job!.args, { webhook_id: one, status: "dead_letter" })
      const records = yield* sql`
        select actor, action, details from audit_records where subject = ${`webhook:${one}`} order by id`
      assert.deepStrictEqual(records, [{
        actor: `person:${operator}`,
        action: "webhook.replayed",
        details: { reason, deliveries: 2 },
      }])

      const ofType = yield* send("GET", `${path}/replay?webhook_id=${one}&since=${since}&event_type=email.opened`, oz)
      assert.deepStrictEqual(ofType.body, { deliveries: 0 })
      const sent = yield* send("POST", `${path}/replay`, oz, { ...body, event_type: "email.opened" })
      assert.strictEqual(sent.body.deliveries, 0)
      const unknown = yield* send("POST", `${path}/replay`, oz, { ...body, event_type: "email.unknown" })
      assert.strictEqual(unknown.status, 422)

      const none = yield* send("POST", `${path}/replay`, oz, { ...body, until: since })
      assert.strictEqual(none.body.deliveries, 0)
      for (const webhook_id of [gone, randomUUID(), "nothing"]) {
        assert.deepStrictEqual(codeOf(yield* send("POST", `${path}/replay`, oz, { ...body, webhook_id })), [
          404,
          "not_found",
        ])
      }
      assert.lengthOf(yield* jobs, 1)
    }))

  it.effect("one is sent again with a reason; a deleted webhook's is not", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const operator = yield* person({ operator: true })
      const oz = yield* bearer(operator)
      const [letter, lost] = [yield* deadLetter(yield* hook()), yield* deadLetter(yield* hook(true))]
      const replay = (id: string, headers: Readonly<Record<string, string>> = oz) =>
        send("POST", `${path}/${id}/replay`, headers, { reason })
      const refused = yield* replay(letter, yield* bearer(yield* person()))
      assert.deepStrictEqual(codeOf(refused), [403, "role_required"])
      assert.deepStrictEqual((yield* replay(letter)).body, { deliveries: 1 })
      const queued = yield* sql`select cycle from delivery_queue where delivery_id = ${letter}::uuid`
      assert.deepStrictEqual(queued, [{ cycle: 2 }])
      const [record] = yield* sql`
        select actor, details from audit_records where subject = ${`delivery:${letter}`} and outcome = 'done'`
      assert.deepStrictEqual(record, { actor: `person:${operator}`, details: { reason } })
      assert.deepStrictEqual(codeOf(yield* replay(letter)), [404, "not_found"])
      const gone = yield* replay(lost)
      assert.deepStrictEqual(codeOf(gone), [409, "invalid_state"])
      const kept = yield* sql`select from dead_letters where delivery_id = ${lost}::uuid`
      assert.lengthOf(kept, 1)
    }))

  it.effect("a page reads few rows among 50,000 dead letters", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const [one, few] = [yield* hook(), yield* hook()]
      const mine = [yield* deadLetter(few), yield* deadLetter(few)]
      yield* sql`update dead_letters set account_id = ${uuid(7)}::uuid where webhook_id = ${few}::uuid`
      yield* owner`
        insert into dead_letters select gen_random_uuid(), ${one}::uuid, account_id, event_id, event_type, source_id, body,
          cycle, attempt, response_status, error, endpoint_url, response_body, attempts, created_at, died_at
        from dead_letters, generate_series(1, 50000) where delivery_id = ${mine[0]!}::uuid`
      yield* owner`update dead_letters set account_id = ${uuid(8)}::uuid where webhook_id = ${one}::uuid`
      yield* owner`vacuum analyze dead_letters`
      const letters = yield* DeadLetters
      for (const filter of [{}, { webhookId: few }, { accountId: AccountId.make(uuid(7)) }]) {
        const [rows] = yield* rowsRead(sql, letters.list(filter, 10))
        assert.isAtMost(rows.get("dead_letters") ?? 0, 60, JSON.stringify(filter))
      }
    }).pipe(Effect.provide(DeadLetters.layer), Effect.provide(Replays.layer)))
})
