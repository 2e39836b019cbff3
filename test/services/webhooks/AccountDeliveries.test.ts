import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { type AccountId, type DeliveryId, SourceEventId, WebhookId } from "../../../schemas/BrandedIds.ts"
import { DeliveryList, type DeliveryRecord, DeliveryStatus } from "../../../schemas/mail/Delivery.ts"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Ids, leastIdAt } from "../../../services/platform/Ids.ts"
import { AccountDeliveries, type DeliveryFilter } from "../../../services/webhooks/AccountDeliveries.ts"
import { Partitions } from "../../../services/webhooks/Partitions.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { account } from "../../support/TestAccounts.ts"
import { noon } from "../../support/Fixtures.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import {
  dayMillis,
  event,
  failed,
  fixture,
  now,
  on,
  resultOf,
  retention,
  settle,
  take,
  webhook,
} from "./WebhookFixture.ts"

const served = Layer.provideMerge(AccountDeliveries.layer(retention), Layer.fresh(fixture()))

const dead = { ending: "interrupted", fatal: true, status: null, error: "interrupted" } as const
const decode = Schema.decodeUnknownSync(DeliveryList)

const page = Effect.fnUntraced(function* (accountId: AccountId, filter: Partial<DeliveryFilter> = {}) {
  return decode(yield* (yield* AccountDeliveries).list(accountId, { limit: 100, ...filter }))
})

/** Ids of all pages; how many pages there were. */
const walk = Effect.fnUntraced(function* (accountId: AccountId, filter: Partial<DeliveryFilter> & { limit: number }) {
  const found: Array<DeliveryRecord> = []
  let pages = 0
  let afterId: string | null = null
  do {
    const next: DeliveryList = yield* page(accountId, { ...filter, ...(afterId === null ? {} : { afterId }) })
    assert.isAtMost(next.items.length, filter.limit)
    found.push(...next.items)
    pages++
    afterId = next.next_after_id
  } while (afterId !== null)
  return { ids: found.map(({ id }) => id), pages, found }
})

/** What the tables say, newest first. */
const rowsOf = Effect.fnUntraced(function* (accountId: AccountId) {
  const { sql } = yield* Database
  return yield* sql<{ id: DeliveryId; webhook_id: WebhookId; status: string; event_type: string; created_at: Date }>`
    select x.* from (
      select id::text as id, webhook_id, status, event_type, created_at from deliveries
      where account_id = ${accountId}::uuid
      union
      select delivery_id::text, webhook_id, 'dead_letter', event_type, created_at from dead_letters
      where account_id = ${accountId}::uuid
    ) x join webhooks w on w.id = x.webhook_id and w.deleted_at is null order by x.id desc`
})

const both = ["email.delivered", "email.bounced"] as const

/** An account with three webhooks, and deliveries of every state and of two types over 40 days. */
const history = Effect.gen(function* () {
  const accountId = yield* account({ plan: "business" })
  const hooks = [
    yield* webhook({ of: accountId, events: both }),
    yield* webhook({ of: accountId, events: ["email.delivered"] }),
    yield* webhook({ of: accountId, events: ["email.bounced"] }),
  ]
  for (const days of [40, 31, 10, 1, 0]) {
    const at = noon - days * dayMillis
    const events = Array.from({ length: 6 }, (_, i) => event(accountId, { event: both[i % 2]! }))
    // With a generator of its own: ids never go back in time, and these must lie in the partition of their day.
    const { tasks } = yield* take(events).pipe(on(at), Effect.provide(Ids.own))
    yield* settle(tasks.slice(0, 4).map((task) => resultOf(task, at)))
    yield* settle(tasks.slice(4, 7).map((task) => failed(task, at)))
    yield* settle(tasks.slice(7, 9).map((task) => resultOf(task, at, dead)))
  }
  return { accountId, hooks, rows: yield* rowsOf(accountId) }
})

layer(served)("the deliveries of all webhooks", (it) => {
  it.effect("are listed newest first, without gap or repeat, whatever the page's size", () =>
    Effect.gen(function* () {
      const { accountId, rows } = yield* history
      const ids = rows.map(({ id }) => id)
      assert.lengthOf(ids, 60)
      for (const limit of [1, 7, 59, 60, 61, 100]) {
        assert.deepStrictEqual((yield* walk(accountId, { limit })).ids, ids, String(limit))
      }
      const [newest] = (yield* page(accountId, { limit: 1 })).items
      assert.deepInclude(newest, {
        id: ids[0]!,
        webhook_id: rows[0]!.webhook_id,
        event_type: rows[0]!.event_type as DeliveryRecord["event_type"],
        status: rows[0]!.status as DeliveryRecord["status"],
        created_at: rows[0]!.created_at.toISOString(),
      })
    }))

  it.effect(
    "every filter finds its own, alone and with others; an unknown value finds nothing",
    () =>
      Effect.gen(function* () {
        const { accountId, hooks, rows } = yield* history
        const [since, until] = [noon - 31 * dayMillis, noon - dayMillis]
        for (const status of [undefined, ...DeliveryStatus.literals]) {
          for (const eventType of [undefined, ...both]) {
            for (const webhookId of [undefined, hooks[1]!.id]) {
              for (const span of [{}, { since, until }]) {
                const own = rows.filter((row) =>
                  (status === undefined || row.status === status) &&
                  (eventType === undefined || row.event_type === eventType) &&
                  (webhookId === undefined || row.webhook_id === webhookId) &&
                  (!("since" in span) || row.created_at.getTime() >= since && row.created_at.getTime() < until)
                )
                const asked = { status, eventType, webhookId, ...span }
                for (const limit of [2, 100]) {
                  const { ids } = yield* walk(accountId, { ...asked, limit })
                  assert.deepStrictEqual(ids, own.map(({ id }) => id), JSON.stringify({ ...asked, limit }))
                }
              }
            }
          }
        }
        const nothing = { items: [], next_after_id: null }
        for (const asked of [{ status: "Delivered" }, { eventType: "email" }, { webhookId: WebhookId.make("x") }]) {
          assert.deepStrictEqual(yield* page(accountId, asked), nothing, JSON.stringify(asked))
        }
      }),
    60_000,
  )

  it.effect("are found by the status of their last answer, a class of statuses, and where no answer came", () =>
    Effect.gen(function* () {
      const { accountId } = yield* history
      const { sql } = yield* Database
      const rows = yield* sql<{ id: string; response_status: number | null; error: string | null }>`
        select id::text as id, response_status, error from deliveries where account_id = ${accountId}::uuid
        union select delivery_id::text, response_status, error from dead_letters where account_id = ${accountId}::uuid
        order by id desc`
      const ids = (which: (row: typeof rows[number]) => boolean) => rows.filter(which).map(({ id }) => id)
      const found = (responseStatus: string) =>
        Effect.map(walk(accountId, { responseStatus, limit: 7 }), ({ ids }) => ids)
      const answered = ids((row) => row.response_status === 200)
      assert.isNotEmpty(answered)
      assert.deepStrictEqual(yield* found("200"), answered)
      assert.deepStrictEqual(yield* found("2xx"), answered)
      const refused = ids((row) => row.response_status === 500)
      assert.isNotEmpty(refused)
      assert.deepStrictEqual(yield* found("5xx"), refused)
      const retrying = yield* walk(accountId, { responseStatus: "5xx", status: "retrying", limit: 2 })
      assert.deepStrictEqual(retrying.ids, refused)
      const silent = ids((row) => row.response_status === null && row.error !== null)
      assert.isNotEmpty(silent)
      assert.deepStrictEqual(yield* found("none"), silent)
      for (const text of ["404", "4xx", "6xx", "20", "2XX", "null", ""]) assert.deepStrictEqual(yield* found(text), [])
    }))

  it.effect("are found by the id of their email and of their event, dead letters of dropped days too", () =>
    Effect.gen(function* () {
      const accountId = yield* account({ plan: "business" })
      const hooks = [yield* webhook({ of: accountId, events: both }), yield* webhook({ of: accountId, events: both })]
      const bodyOf = (emailId: string) => JSON.stringify({ event: "email.delivered", email_id: emailId, metadata: {} })
      const made = Effect.fnUntraced(function* (days: number, sourceId: string, emailId: string) {
        const at = noon - days * dayMillis
        const events = [event(accountId, { sourceId, body: bodyOf(emailId) }), event(accountId)]
        const { tasks } = yield* take(events).pipe(on(at), Effect.provide(Ids.own))
        yield* settle(tasks.map((task) => resultOf(task, at, dead)))
        return tasks.slice(0, hooks.length).map(({ deliveryId }) => deliveryId).sort().reverse()
      })
      const id = (days: number) => leastIdAt(noon - days * dayMillis)
      const [old, quoted, timed] = [
        yield* made(40, "a", "m-1"),
        yield* made(9, 'quote"d', 'm"2'),
        yield* made(0, id(1), id(2)),
      ]
      const { sql } = yield* Database
      yield* sql`delete from deliveries where id = any(${old}::uuid[])`
      const found = (filter: Partial<DeliveryFilter>) =>
        Effect.map(walk(accountId, { ...filter, limit: 1 }), ({ ids }) => ids)
      assert.deepStrictEqual(yield* found({ emailId: "m-1" }), old)
      assert.deepStrictEqual(yield* found({ emailId: 'm"2' }), quoted)
      assert.deepStrictEqual(yield* found({ emailId: id(2) }), timed)
      assert.deepStrictEqual(yield* found({ eventId: SourceEventId.make("a") }), old)
      const one = yield* found({ eventId: SourceEventId.make('quote"d'), webhookId: hooks[0]!.id })
      assert.lengthOf(one, 1)
      assert.include(quoted, one[0])
      const eventId = SourceEventId.make(id(1))
      assert.deepStrictEqual(yield* found({ eventId, emailId: id(2) }), timed)
      assert.deepStrictEqual(yield* found({ eventId, emailId: "m-1" }), [])
      for (const none of ["m", "A", "m-1\u0000", "\ud800"]) {
        assert.deepStrictEqual(yield* found({ emailId: none }), [], none)
        assert.deepStrictEqual(yield* found({ eventId: SourceEventId.make(none) }), [], none)
      }
      const stranger = yield* webhook()
      assert.deepStrictEqual((yield* page(stranger.accountId, { eventId: SourceEventId.make("a") })).items, [])
      // Deliveries that wait.
      const { tasks } = yield* take([event(accountId, { sourceId: "w", body: bodyOf("m-9") }), event(accountId)])
      const waiting = tasks.slice(0, hooks.length).map(({ deliveryId }) => deliveryId).sort().reverse()
      assert.deepStrictEqual(yield* found({ status: "pending", emailId: "m-9" }), waiting)
      assert.deepStrictEqual(yield* found({ status: "retrying", eventId: SourceEventId.make("w") }), [])
    }))

  it.effect("another account's webhook finds nothing, like an unknown one; deleted webhooks are left out", () =>
    Effect.gen(function* () {
      const { accountId, hooks, rows } = yield* history
      const stranger = yield* history
      for (const webhookId of [stranger.hooks[0]!.id, WebhookId.make(randomUUID())]) {
        for (const status of [undefined, ...DeliveryStatus.literals]) {
          assert.deepStrictEqual((yield* page(accountId, { webhookId, status })).items, [])
        }
      }
      assert.deepStrictEqual((yield* walk(accountId, { limit: 100 })).ids, rows.map(({ id }) => id))
      yield* (yield* Webhooks).remove(accountId, hooks[0]!.id)
      const left = rows.filter((row) => row.webhook_id !== hooks[0]!.id)
      assert.deepStrictEqual((yield* walk(accountId, { limit: 10 })).ids, left.map(({ id }) => id))
      assert.deepStrictEqual((yield* page(yield* account({ plan: "free" }))).items, [])
    }))

  it.effect("a dead letter stays listed after the partition of its delivery was dropped", () =>
    Effect.gen(function* () {
      const { accountId, rows } = yield* history
      const { sql } = yield* Database
      const old = rows.filter(({ created_at }) => created_at.getTime() <= noon - 40 * dayMillis)
      yield* sql`delete from deliveries where id = any(${old.map(({ id }) => id)}::uuid[])`
      const kept = rows.filter((row) => !old.includes(row) || row.status === "dead_letter")
      assert.isBelow(kept.length, rows.length)
      assert.deepStrictEqual((yield* walk(accountId, { limit: 9 })).ids, kept.map(({ id }) => id))
    }))

  it.effect("what waits is found in flight, waiting and retrying, and no longer once it has ended", () =>
    Effect.gen(function* () {
      const { accountId } = yield* webhook()
      const { tasks } = yield* take(Array.from({ length: 5 }, () => event(accountId)), 3)
      const pending = yield* walk(accountId, { status: "pending", limit: 2 })
      assert.lengthOf(pending.ids, 5)
      const at = yield* now
      yield* settle([resultOf(tasks[0]!, at), failed(tasks[1]!, at)])
      assert.lengthOf((yield* walk(accountId, { status: "pending", limit: 2 })).ids, 3)
      const retrying = yield* walk(accountId, { status: "retrying", limit: 2 })
      assert.deepStrictEqual(retrying.ids, [tasks[1]!.deliveryId])
      assert.isNotNull(retrying.found[0]!.next_retry_at)
      yield* (yield* Replays).again(tasks[0]!.webhookId, [tasks[0]!.deliveryId])
      assert.include((yield* walk(accountId, { status: "pending", limit: 100 })).ids, tasks[0]!.deliveryId)
    }))
})

const hooks = 20
const many = 60_000

layer(served)("the deliveries of all webhooks, among many", (it) => {
  it.effect("a page reads no more than it may, and its cursor leads on to what is rare", () =>
    Effect.gen(function* () {
      const { owner, reads, wide } = yield* Database
      yield* (yield* Partitions).upkeep
      const accountId = yield* account({ plan: "business" })
      const own = []
      for (let i = 0; i < hooks; i++) own.push((yield* webhook({ of: accountId, events: [...eventTypes] })).id)
      const others = yield* webhook()
      const id = `(lpad(to_hex(${noon} - (i % 3) * 86400000 - i), 12, '0') || '7d00' || '8000' ||
        lpad(to_hex(i), 12, '0'))::uuid`
      const insert = (hook: string, accountId: AccountId, from: number) =>
        owner.unsafe(`
          insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at)
          select ${id}, ${hook}, '${accountId}', ${id}, case when i = ${
          from + 1
        } then 'email.complained' else 'email.sent' end,
            'delivered', 1, 1, to_timestamp(${noon / 1000}) from generate_series(${from + 1}, ${from + many}) i`)
      yield* insert(`(array['${own.join("','")}'])[1 + i % ${hooks}]::uuid`, accountId, 0)
      yield* insert(`'${others.id}'::uuid`, others.accountId, many)
      yield* owner.unsafe(`
        insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
        select ${id}, '${others.id}', '${others.accountId}', ${id}, 1, 1, to_timestamp(0)
        from generate_series(${many + 1}, ${2 * many}) i`)
      yield* owner`vacuum analyze deliveries, delivery_queue, dead_letters, webhooks`
      const counted = Effect.fnUntraced(function* (filter: Partial<DeliveryFilter>) {
        const client = filter.status === "pending" ? wide : reads
        const [rows, found] = yield* rowsRead(client, page(accountId, filter))
        return [[...rows.values()].reduce((sum, n) => sum + n, 0), found] as const
      })

      const [plain, newest] = yield* counted({ limit: 20 })
      assert.lengthOf(newest.items, 20)
      assert.isAtMost(plain, hooks * 30)
      const [filtered, sent] = yield* counted({ limit: 20, eventType: "email.sent" })
      assert.lengthOf(sent.items, 20)
      assert.isAtMost(filtered, 25_000)
      const [searched, rare] = yield* counted({ limit: 20, eventType: "email.complained" })
      assert.isAtMost(searched, 25_000)
      assert.isNotNull(rare.next_after_id)
      const { ids, pages } = yield* walk(accountId, { limit: 20, eventType: "email.complained" })
      assert.lengthOf(ids, 1)
      assert.isAtMost(pages, many / 20_000 + 2)
      const [answered, lost] = yield* counted({ limit: 20, responseStatus: "404" })
      assert.isAtMost(answered, 25_000)
      assert.isNotNull(lost.next_after_id)
      const [byEmail] = yield* counted({ limit: 20, emailId: "m-1" })
      assert.isAtMost(byEmail, 2 * 5_000 + hooks * 30)
      // Never accepted: nothing is looked at.
      assert.isAtMost((yield* counted({ limit: 20, eventId: SourceEventId.make("e-1") }))[0], 2)
      const [waiting, none] = yield* counted({ limit: 20, status: "pending" })
      assert.deepStrictEqual([none.items, none.next_after_id], [[], null])
      assert.isAtMost(waiting, 2 * hooks)
      const [letters] = yield* counted({ limit: 20, status: "dead_letter" })
      assert.isAtMost(letters, 2 * hooks)
    }), 120_000)
})
