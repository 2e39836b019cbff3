import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { randomUUID } from "node:crypto"
import { AccountId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { WebhookView, WebhookWithSecret } from "../../../schemas/mail/Webhook.ts"
import { WebhookLimit, WebhookNotFound } from "../../../schemas/problems/WebhookProblems.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { account } from "../../support/TestAccounts.ts"
import {
  count,
  dayMillis,
  event,
  fixture,
  now,
  on,
  resultOf,
  retention,
  session,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(WebhookView)))
const listed = Effect.fnUntraced(function* (accountId: AccountId, paused = false) {
  return decode(yield* (yield* Webhooks).list(session(accountId), paused))
})
const viewOf = ({ secret: _, ...view }: WebhookWithSecret & { readonly accountId?: AccountId }): WebhookView => {
  const { accountId: _account, ...shown } = view
  return { ...shown, health: shown.is_active ? shown.health : "paused" }
}
const unknown = "00000000-0000-4000-8000-000000000000"

/** The tables with rows that contain this text, in clear, in base64 or in hex. */
const holding = Effect.fnUntraced(function* (text: string) {
  const { owner } = yield* Database
  const tables = yield* owner<{ name: string }>`
    select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r' order by 1`
  const forms = [text, Buffer.from(text).toString("base64").slice(0, -4), Buffer.from(text).toString("hex")]
  const found: Array<string> = []
  for (const { name } of tables) {
    for (const form of forms) {
      const rows = yield* owner`select from ${owner.literal(name)} t where strpos(t::text, ${form}) > 0 limit 1`
      if (rows.length > 0) found.push(name)
    }
  }
  assert.isAbove(tables.length, 20)
  return found
})

const byOwner = { paused_at: "2026-03-10T12:00:01.000Z", paused_by: "owner" } as const

layer(Layer.fresh(fixture({ perAccount: 5 })))("Webhooks", (it) => {
  it.effect("a new webhook is active, has each event type once, and a new secret of 256 bits", () =>
    Effect.gen(function* () {
      const { create } = yield* Webhooks
      const accountId = yield* account({ plan: "free" })
      const made = yield* create(accountId, {
        url: "https://hooks.example.com/a?b=c",
        events: ["email.sent", "email.opened", "email.sent"],
      })
      assert.isTrue(Schema.is(WebhookWithSecret)(made))
      assert.deepStrictEqual([made.events, made.is_active], [["email.sent", "email.opened"], true])
      assert.lengthOf(Buffer.from(made.secret.slice("whsec_".length), "base64"), 32)
      const other = yield* create(accountId, { url: "https://hooks.example.com/", events: ["email.sent"] })
      assert.notStrictEqual(other.secret, made.secret)
    }))

  it.effect("20 concurrent creates make exactly as many as the account may have; a deleted one does not count", () =>
    Effect.gen(function* () {
      const { create, remove } = yield* Webhooks
      const accountId = yield* account({ plan: "free" })
      const one = create(accountId, { url: "https://hooks.example.com/", events: ["email.sent"] })
      const results = yield* Effect.all(Array.from({ length: 20 }, () => Effect.result(one)), {
        concurrency: "unbounded",
      })
      const made = results.filter(Result.isSuccess)
      assert.lengthOf(made, 5)
      for (const result of results) {
        if (Result.isFailure(result)) assert.instanceOf(result.failure, WebhookLimit)
      }
      assert.strictEqual(yield* count("webhooks", `account_id = '${accountId}'`), 5)
      yield* (yield* Webhooks).update(accountId, made[1]!.success.id, { isActive: false })
      assert.instanceOf(yield* Effect.flip(one), WebhookLimit)
      yield* remove(accountId, made[0]!.success.id)
      yield* one
      assert.instanceOf(yield* Effect.flip(one), WebhookLimit)
    }))

  it.effect("a URL outside the policy is refused on create and on update", () =>
    Effect.gen(function* () {
      const { create, update } = yield* Webhooks
      const hook = yield* webhook()
      for (
        const url of ["http://93.184.216.34/", "https://10.0.0.1/", "https://169.254.169.254/", "ftp://a.example/"]
      ) {
        const refused = yield* Effect.flip(create(hook.accountId, { url, events: ["email.sent"] }))
        assert.instanceOf(refused, HTTPValidationError, url)
        assert.instanceOf(yield* Effect.flip(update(hook.accountId, hook.id, { url })), HTTPValidationError, url)
      }
      assert.deepStrictEqual(yield* listed(hook.accountId), [viewOf(hook)])
    }))

  it.effect("lists active webhooks, newest first, paused ones on request; no secret, no other account's", () =>
    Effect.gen(function* () {
      const { list, update } = yield* Webhooks
      const one = yield* webhook()
      yield* TestClock.adjust("1 second")
      const two = yield* webhook({ of: one.accountId, events: ["email.sent", "email.failed"] })
      yield* webhook()
      assert.deepStrictEqual(yield* listed(one.accountId), [viewOf(two), viewOf(one)])
      yield* update(one.accountId, two.id, { isActive: false })
      assert.deepStrictEqual(yield* listed(one.accountId), [viewOf(one)])
      assert.deepStrictEqual(yield* listed(one.accountId, true), [
        viewOf({ ...two, is_active: false, ...byOwner }),
        viewOf(one),
      ])
      assert.notInclude(yield* list(session(one.accountId), true), "whsec_")
      assert.strictEqual((yield* Effect.flip(list(session(AccountId.make(unknown)), true)))._tag, "InvalidCredentials")
    }))

  it.effect("an update changes the named members and returns the webhook; one without a change writes nothing", () =>
    Effect.gen(function* () {
      const { update } = yield* Webhooks
      const { sql } = yield* Database
      const hook = yield* webhook()
      const row = sql`select w.xmin::text as xmin, w::text as row,
          (select count(*)::int from audit_records) as audited, (select count(*)::int from outbox) as told
        from webhooks w where id = ${hook.id}::uuid`
      const before = yield* row
      for (
        const same of [{}, { isActive: true }, { url: hook.url }, {
          events: ["email.delivered", "email.delivered"],
        }] as const
      ) {
        assert.deepStrictEqual(yield* update(hook.accountId, hook.id, same), viewOf(hook))
      }
      assert.deepStrictEqual(yield* row, before)
      const url = "https://new.example.com/"
      const changed = yield* update(hook.accountId, hook.id, { url, events: ["email.clicked"], isActive: false })
      assert.deepStrictEqual(changed, {
        ...viewOf({ ...hook, is_active: false, ...byOwner }),
        url,
        events: ["email.clicked"],
        is_active: false,
      })
      assert.deepStrictEqual(yield* listed(hook.accountId, true), [changed])
      const audit = yield* sql<{ action: string }>`
        select action from audit_records where subject = ${`webhook:${hook.id}`} order by id`
      assert.deepStrictEqual(audit.map(({ action }) => action), [
        "webhook.created",
        "webhook.updated",
        "webhook.paused",
      ])
      assert.strictEqual(yield* count("outbox", `subject = 'notifications.v1.${hook.accountId}.alerts'`), 1)
    }))

  it.effect("events create no deliveries while the webhook is paused or does not listen to their type", () =>
    Effect.gen(function* () {
      const { update } = yield* Webhooks
      const hook = yield* webhook({ events: ["email.sent"] })
      const sent = () => event(hook.accountId, { event: "email.sent" })
      assert.strictEqual((yield* take([sent(), event(hook.accountId)])).deliveries, 1)
      yield* update(hook.accountId, hook.id, { isActive: false })
      assert.strictEqual((yield* take([sent()])).deliveries, 0)
      yield* update(hook.accountId, hook.id, { isActive: true })
      assert.strictEqual((yield* take([sent()])).deliveries, 1)
      yield* update(hook.accountId, hook.id, { events: ["email.opened"] })
      assert.strictEqual((yield* take([sent()])).deliveries, 0)
    }))

  it.effect("another account's, an unknown and a deleted webhook, and an invalid id are the same 404", () =>
    Effect.gen(function* () {
      const { remove, rotate, update } = yield* Webhooks
      const mine = yield* webhook()
      const gone = yield* webhook({ of: mine.accountId })
      const theirs = yield* webhook()
      yield* remove(mine.accountId, gone.id)
      for (const id of [theirs.id, gone.id, WebhookId.make(unknown), WebhookId.make("no-id")]) {
        const refused = [
          yield* Effect.flip(update(mine.accountId, id, { isActive: false })),
          yield* Effect.flip(remove(mine.accountId, id)),
          yield* Effect.flip(rotate(mine.accountId, id, 0)),
        ]
        for (const problem of refused) assert.instanceOf(problem, WebhookNotFound, id)
      }
      assert.lengthOf(yield* listed(theirs.accountId), 1)
    }))

  it.effect("20 concurrent changes make 20 versions, and one of them is stored", () =>
    Effect.gen(function* () {
      const { update } = yield* Webhooks
      const { sql } = yield* Database
      const hook = yield* webhook()
      const urls = Array.from({ length: 20 }, (_, i) => `https://hooks.example.com/${i}`)
      yield* Effect.all(urls.map((url) => update(hook.accountId, hook.id, { url })), { concurrency: "unbounded" })
      const [row] = yield* sql<{ version: number }>`select version from webhooks where id = ${hook.id}::uuid`
      assert.strictEqual(row!.version, 21)
      assert.include(urls, (yield* listed(hook.accountId))[0]!.url)
    }))

  it.effect("no secret is in clear, base64 or hex in any table, before and after a rotation", () =>
    Effect.gen(function* () {
      const { rotate } = yield* Webhooks
      const hook = yield* webhook()
      const { tasks } = yield* take([event(hook.accountId)])
      assert.strictEqual(tasks[0]!.endpoint.secret, hook.secret)
      const rotated = yield* rotate(hook.accountId, hook.id, 86_400)
      assert.deepStrictEqual(viewOf(rotated), viewOf(hook))
      assert.notStrictEqual(rotated.secret, hook.secret)
      for (const { secret } of [hook, rotated]) {
        assert.deepStrictEqual(yield* holding(secret.slice("whsec_".length)), [])
      }
      // The check finds a text that is not secret. (Notices of other tests contain URLs of their webhooks.)
      assert.include(yield* holding(hook.url), "webhooks")
    }))

  it.effect("no custom header and no password is in clear, base64 or hex in any table, nor in one once it is removed", () =>
    Effect.gen(function* () {
      const { get, list, remove, update } = yield* Webhooks
      const [value, password, later] = [1, 2, 3].map((n) => `${n}-${randomUUID()}`) as [string, string, string]
      const headers = [{ name: "X-Tenant", value }, { name: "X-Team", value: "blue" }]
      const hook = yield* webhook({ headers, basicAuth: { username: "hook", password } })
      const sealed = count("webhooks", `id = '${hook.id}' and num_nonnulls(headers, headers_kid, basic_auth) > 0`)
      assert.strictEqual(yield* sealed, 1)
      const basic = `Basic ${Buffer.from(`hook:${password}`).toString("base64")}`
      const { tasks: [task] } = yield* take([event(hook.accountId)])
      assert.deepStrictEqual(task!.endpoint.headers, { "X-Tenant": value, "X-Team": "blue", Authorization: basic })
      const changed = yield* update(hook.accountId, hook.id, { headers: [{ name: "X-Tenant", value: later }] })
      const answers = [changed, yield* get(hook.accountId, hook.id), yield* list(session(hook.accountId), false)]
      for (const text of [value, password, later]) {
        assert.deepStrictEqual(yield* holding(text), [])
        assert.notInclude(JSON.stringify([hook, ...answers]), text)
      }
      assert.deepInclude(changed, { header_names: ["X-Tenant"], basic_auth: true })
      const { tasks: [next] } = yield* take([event(hook.accountId)])
      assert.deepStrictEqual(next!.endpoint.headers, { "X-Tenant": later, Authorization: basic })

      const none = { headers: [], basicAuth: { username: "", password: "" } }
      assert.deepInclude(yield* update(hook.accountId, hook.id, none), { header_names: [], basic_auth: false })
      assert.strictEqual(yield* sealed, 0)
      yield* update(hook.accountId, hook.id, { headers, basicAuth: { username: "hook", password } })
      yield* remove(hook.accountId, hook.id)
      assert.strictEqual(yield* sealed, 0)
    }))

  it.effect("a secret that is no longer used is deleted", () =>
    Effect.gen(function* () {
      const { remove, rotate } = yield* Webhooks
      const { upkeep } = yield* Partitions
      const hook = yield* webhook()
      yield* rotate(hook.accountId, hook.id, 60)
      const kept = (columns: string) => count("webhooks", `id = '${hook.id}' and num_nonnulls(${columns}) > 0`)
      const old = kept("old_secret_kid, old_secret, old_secret_until")
      const ends = (yield* now) + 60_000
      yield* upkeep.pipe(on(ends - 1))
      assert.strictEqual(yield* old, 1)
      yield* upkeep.pipe(on(ends))
      assert.strictEqual(yield* old, 0)
      const { tasks } = yield* take([event(hook.accountId)])
      assert.isNull(tasks[0]!.endpoint.old)

      yield* rotate(hook.accountId, hook.id, 60)
      yield* remove(hook.accountId, hook.id)
      assert.strictEqual(yield* kept("nullif(secret, ''), old_secret_kid, old_secret, old_secret_until"), 0)
    }))

  // Runs last, since the webhooks of the other tests are then old as well.
  it.effect("a deleted webhook's row is deleted with the last of its deliveries and dead letters, and not before", () =>
    Effect.gen(function* () {
      const { remove } = yield* Webhooks
      const { upkeep } = yield* Partitions
      const [gone, waited] = [yield* webhook(), yield* webhook()]
      const { tasks } = yield* take([event(gone.accountId), event(waited.accountId)])
      yield* settle([resultOf(tasks[0]!, yield* now)])
      for (const hook of [gone, waited]) yield* remove(hook.accountId, hook.id)
      const left = count("webhooks", `id = '${gone.id}'`)
      const ends = (yield* now) + (retention.deliveredDays + retention.deadLetterDays) * dayMillis
      yield* upkeep.pipe(on(ends))
      assert.strictEqual(yield* left, 1)
      yield* upkeep.pipe(on(ends + 1))
      assert.strictEqual(yield* left, 0)
      assert.strictEqual(yield* count("delivery_counts", `webhook_id = '${gone.id}'`), 0)
      assert.strictEqual(yield* count("webhooks", `id = '${waited.id}'`), 1)
    }))
})
