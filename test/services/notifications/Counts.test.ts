/** Random histories of everything that changes an inbox, against a model: the counts always match the rows. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { NotificationId } from "../../../schemas/BrandedIds.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Preferences } from "../../../services/notifications/Preferences.ts"
import { NotificationRetention } from "../../../services/notifications/NotificationRetention.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runs } from "../../support/Runs.ts"
import { announce, counted, fixture, list, newAccount, notice } from "./NotificationFixture.ts"

const kept = 12
const services = NotificationRetention.layer({ perAccount: kept }).pipe(Layer.provideMerge(fixture))

type Command =
  | { readonly _tag: "announce"; readonly keys: ReadonlyArray<string | null>; readonly category: "alerts" | "team" }
  | { readonly _tag: "read"; readonly nth: number }
  | { readonly _tag: "readAll" | "prune" | "undo" }
  | { readonly _tag: "web"; readonly on: boolean }
  | { readonly _tag: "wait"; readonly minutes: number }

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      _tag: fc.constant("announce" as const),
      keys: fc.array(fc.constantFrom(null, null, "a", "b"), { minLength: 1, maxLength: 4 }),
      category: fc.constantFrom("alerts" as const, "team" as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("read" as const), nth: fc.nat(15) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constantFrom("readAll" as const, "prune" as const, "undo" as const) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("web" as const), on: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("wait" as const), minutes: fc.nat(40) }) },
)

interface Modelled {
  readonly key: string | null
  /** Order of creation; breaks ties of one millisecond, since ids are ordered. */
  readonly made: number
  /** When it was announced last. */
  at: number
  read: boolean
  count: number
}

/** Runs a history on an account of its own and compares after every command. */
const run = Effect.fnUntraced(function* (history: ReadonlyArray<Command>) {
  const me = yield* newAccount()
  const { sql } = yield* Database
  const inbox = yield* Inbox
  // The category is mailed as well, so that hidden notifications are kept for coalescing too.
  yield* (yield* Preferences).set(me, { preferences: { team: { email: true } } })
  let model: Array<Modelled> = []
  const hidden = new Set<string>()
  let web = true
  let version = 0n
  let made = 0

  const say = Effect.fnUntraced(function* (keys: ReadonlyArray<string | null>, category: "alerts" | "team") {
    const now = yield* Clock.currentTimeMillis
    const hour = Math.floor(now / 3_600_000)
    yield* announce(...keys.map((key) => notice(me, { category, ...(key === null ? {} : { coalesceKey: key }) })))
    for (const key of keys) {
      const full = key === null ? null : `${key}.${hour}`
      const there = full === null ? undefined : model.find((n) => n.key === full)
      const shown = category === "alerts" || web
      if (there !== undefined) {
        there.count++
        if (shown) Object.assign(there, { read: false, at: now })
      } else if (full !== null && hidden.has(full)) continue
      else if (shown) model.push({ key: full, made: made++, at: now, read: false, count: 1 })
      else if (full !== null) hidden.add(full)
    }
    model.sort((a, b) => a.at - b.at || a.made - b.made)
  })

  const perform = Effect.fnUntraced(function* (command: Command) {
    switch (command._tag) {
      case "announce":
        return yield* say(command.keys, command.category)
      case "undo": {
        const undone = Effect.andThen(announce(notice(me), notice(me, { coalesceKey: "a" })), Effect.fail("undone"))
        return yield* Effect.ignore(sql.withTransaction(undone))
      }
      case "read": {
        const rows = yield* sql<{ id: NotificationId }>`
          select id from notifications where account_id = ${me}::uuid and shown order by created_at, id`
        const row = rows[command.nth]
        if (row === undefined) return
        model[command.nth]!.read = true
        return yield* Effect.asVoid(inbox.markRead(me, row.id))
      }
      case "readAll": {
        const updated = yield* inbox.readAll(me)
        assert.strictEqual(updated, model.filter(({ read }) => !read).length)
        return model.forEach((n) => n.read = true)
      }
      case "prune":
        model = model.slice(-kept)
        return yield* (yield* NotificationRetention).prune
      case "web":
        web = command.on
        return yield* Effect.asVoid((yield* Preferences).set(me, { preferences: { team: { web } } }))
      case "wait":
        return yield* TestClock.adjust(command.minutes * 60_000)
    }
  })

  for (const command of history) {
    yield* perform(command)
    // Ids and times of one millisecond are ordered, too.
    yield* TestClock.adjust(1)
    const expected = { total: model.length, unread: model.filter(({ read }) => !read).length }
    const { items, total, unread } = yield* list(me, { limit: 200 })
    assert.deepStrictEqual({ total, unread }, expected, command._tag)
    assert.deepStrictEqual(yield* counted(me), expected, command._tag)
    assert.deepStrictEqual(
      items.map(({ count, read_at }) => [count, read_at !== null]),
      [...model].reverse().map((n) => [n.count, n.read]),
    )
    const [row] = yield* sql<{ version: bigint }>`select version from inboxes where account_id = ${me}::uuid`
    assert.isAtLeast(Number(row?.version ?? 0n), Number(version))
    version = row?.version ?? 0n
  }
})

layer(services)("counts", (it) => {
  it.effect(
    "total and unread match the rows after every command of any history",
    () =>
      Effect.gen(function* () {
        const context = yield* Effect.context<Layer.Success<typeof services>>()
        const histories = fc.array(command, { minLength: 1, maxLength: 25 })
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(histories, (history) => Effect.runPromise(Effect.provideContext(run(history), context))),
            { numRuns: runs(40) },
          )
        )
      }),
    120_000,
  )

  it.effect("total and unread match the rows after concurrent commands", () =>
    Effect.gen(function* () {
      const me = yield* newAccount()
      const inbox = yield* Inbox
      const { prune } = yield* NotificationRetention
      const one = (i: number) =>
        Effect.gen(function* () {
          if (i % 5 === 0) return yield* inbox.readAll(me)
          if (i % 7 === 0) return yield* prune
          const { items } = yield* list(me)
          if (i % 3 === 0 && items[0] !== undefined) return yield* Effect.ignore(inbox.markRead(me, items[0].id))
          yield* announce(notice(me, i % 2 === 0 ? { coalesceKey: `k${i % 4}` } : {}), notice(me))
        })
      yield* Effect.forEach(Array.from({ length: 120 }, (_, i) => i), one, { concurrency: 6, discard: true })
      const { total, unread } = yield* list(me)
      assert.deepStrictEqual({ total, unread }, yield* counted(me))
    }))
})

layer(services)("retention", (it) => {
  it.effect("notifications are kept for 400 days, and the newest of an account; pruned ones are not counted", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { prune } = yield* NotificationRetention
      const [me, other] = [yield* newAccount(), yield* newAccount()]
      yield* TestClock.adjust("1 minute")
      const now = yield* Clock.currentTimeMillis
      yield* announce(
        ...Array.from({ length: kept + 5 }, (_, i) => notice(me, { title: `${i}` })),
        notice(other),
        notice(other),
      )
      yield* sql`update notifications set created_at = ${new Date(now - 401 * 86_400_000)}
        where id = (select id from notifications where account_id = ${other}::uuid order by id limit 1)`
      const { items } = yield* list(me, { limit: 1 })
      yield* (yield* Inbox).markRead(me, items[0]!.id)
      yield* prune
      const left = yield* list(me)
      assert.deepStrictEqual([left.total, left.unread, left.items.at(-1)!.title], [kept, kept - 1, "5"])
      assert.deepStrictEqual(yield* counted(me), { total: kept, unread: kept - 1 })
      assert.deepStrictEqual([(yield* list(other)).total, (yield* counted(other)).total], [1, 1])
    }))
})
