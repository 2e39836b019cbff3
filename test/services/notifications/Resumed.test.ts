/**
 * A live stream that is cut at random, also in the middle of a page, and resumed at either of two processes: random
 * histories over real PostgreSQL. Whenever the client has read all events of one look at the inbox, its own view equals
 * the inbox at that look, counts included, so a gap or a repeat would show.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Queue } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { AccountId } from "../../../schemas/BrandedIds.ts"
import { InvalidCredentials } from "../../../schemas/problems/HttpProblems.ts"
import { Inbox } from "../../../services/notifications/Inbox.ts"
import { Live } from "../../../services/notifications/Live.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runs } from "../../support/Runs.ts"
import { announce, fixture, list, newAccount, notice } from "./NotificationFixture.ts"

type Change =
  | { readonly _tag: "announce"; readonly keys: ReadonlyArray<string | null> }
  | { readonly _tag: "read"; readonly nth: number }
  | { readonly _tag: "readAll" }

/** A connection that is cut after this many events. */
interface Cut {
  readonly process: 0 | 1
  readonly after: number
}

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      _tag: fc.constant("announce" as const),
      keys: fc.array(fc.constantFrom(null, null, null, "a", "b"), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("read" as const), nth: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("readAll" as const) }) },
)

const history = fc.record({
  changes: fc.array(change, { minLength: 5, maxLength: 40 }),
  cuts: fc.array(fc.record({ process: fc.constantFrom(0 as const, 1 as const), after: fc.nat(6) }), { maxLength: 8 }),
})

/** A second process, as far as streams can tell. */
class OtherLive extends Context.Service<OtherLive, Live["Service"]>()("bailiwick/test/notifications/OtherLive") {
  static readonly layer = Layer.effect(OtherLive, Live).pipe(Layer.provide(Layer.fresh(Live.layer)))
}

const nobody = Effect.fail(new InvalidCredentials())
const decoder = new TextDecoder()

interface Told {
  readonly id: string
  readonly version: number
  readonly name: string
  readonly data: {
    readonly total: number
    readonly unread: number
    readonly notification?: { readonly id: string; readonly read_at: string | null }
  }
  /** Whether it is the last event of one look. */
  readonly last: boolean
}

const eventsIn = (bytes: Uint8Array): ReadonlyArray<Told> => {
  const blocks = decoder.decode(bytes).split("\n\n").filter((block) => block.startsWith("id: "))
  return blocks.map((block, i) => {
    const [id, name, data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2))
    return {
      id: id!,
      version: Number(id!.split(".")[1]),
      name: name!,
      data: JSON.parse(data!),
      last: i === blocks.length - 1,
    }
  })
}

const happen = Effect.fnUntraced(function* (me: AccountId, changes: ReadonlyArray<Change>) {
  const inbox = yield* Inbox
  for (const change of changes) {
    if (change._tag === "readAll") yield* inbox.readAll(me)
    else if (change._tag === "announce") {
      yield* announce(...change.keys.map((key) => notice(me, key === null ? {} : { coalesceKey: key })))
    } else {
      const { items } = yield* list(me)
      const item = items[change.nth]
      if (item !== undefined) yield* inbox.markRead(me, item.id)
    }
  }
  const { sql } = yield* Database
  const [row] = yield* sql<{ version: bigint }>`select version from inboxes where account_id = ${me}::uuid`
  return Number(row?.version ?? 0)
})

const run = Effect.fnUntraced(function* ({ changes, cuts }: typeof history extends fc.Arbitrary<infer A> ? A : never) {
  const me = yield* newAccount()
  const processes = [yield* Live, yield* OtherLive]
  const final = yield* Deferred.make<number>()
  const known = new Map<string, boolean>()
  let lastId = "0.0"
  let version = 0

  const take = (event: Told) => {
    if (event.name === "counts") assert.isAtLeast(event.version, version)
    else assert.isAbove(event.version, version, "an event was repeated")
    version = event.version
    lastId = event.id
    if (event.name === "read-all") { for (const id of known.keys()) known.set(id, true) }
    const { notification, total, unread } = event.data
    if (notification !== undefined) known.set(notification.id, notification.read_at !== null)
    assert.notStrictEqual(event.name, "reset")
    if (event.last) {
      const unreadOnes = [...known.values()].filter((read) => !read).length
      assert.deepStrictEqual([known.size, unreadOnes], [total, unread], `at version ${version}`)
    }
  }

  /** Reads until `enough`, then disconnects. */
  const connect = Effect.fnUntraced(
    function* (process: number, enough: (n: number, event: Told) => Effect.Effect<boolean>) {
      const events = yield* Queue.unbounded<Told>()
      const outlet = yield* processes[process]!.open({ accountId: me, credential: nobody, lastEventId: lastId })
      outlet.attach({
        write: (bytes) => {
          for (const event of eventsIn(bytes)) Queue.offerUnsafe(events, event)
          return true
        },
        end: () => {},
      })
      for (let n = 1;; n++) {
        const event = yield* Queue.take(events)
        take(event)
        if (yield* enough(n, event)) break
      }
      outlet.gone()
    },
  )

  const reading = Effect.gen(function* () {
    for (const { after, process } of cuts) {
      yield* connect(process, (n) => Effect.map(Deferred.isDone(final), (done) => done || n > after))
    }
    yield* connect(
      0,
      (_, event) =>
        Effect.flatMap(
          Deferred.isDone(final),
          (done) =>
            done
              ? Effect.map(Deferred.await(final), (end) => event.last && event.version >= end)
              : Effect.succeed(false),
        ),
    )
  })
  const happening = Effect.flatMap(
    happen(me, [...changes, { _tag: "announce", keys: [null] }]),
    (end) =>
      Effect.andThen(
        Deferred.succeed(final, end),
        // One event more, for a reader that had passed the end before `final` was set.
        announce(notice(me)),
      ),
  )
  yield* Effect.all([happening, reading], { concurrency: 2 })
})

const services = OtherLive.layer.pipe(Layer.provideMerge(Live.layer), Layer.provideMerge(fixture))

layer(services, { excludeTestServices: true })("a stream that is cut", (it) => {
  it.effect(
    "is resumed without a gap or a repeat, wherever it was cut and at whichever process",
    () =>
      Effect.gen(function* () {
        const context = yield* Effect.context<Effect.Services<ReturnType<typeof run>>>()
        const all = fc.asyncProperty(
          fc.array(history, { minLength: 1, maxLength: 8 }),
          (histories) =>
            Effect.runPromiseWith(context)(Effect.forEach(histories, run, { concurrency: 8, discard: true })),
        )
        yield* Effect.promise(() => fc.assert(all, { numRuns: runs(5), endOnFailure: true }))
      }),
    120_000,
  )

  it.effect(
    "is resumed by any number of clients at once, even where reading all takes long",
    () =>
      Effect.gen(function* () {
        const { owner } = yield* Database
        const { open } = yield* Live
        const accounts = Array.from({ length: 1_000 }, () => AccountId.make(randomUUID()))
        yield* owner`insert into inboxes (account_id, epoch, version, total, unread)
          select id, 'abc', 1, 1, 1 from unnest(${accounts}::uuid[]) id`
        yield* owner`insert into notifications (id, account_id, shown, version, category, severity, title, body, href,
            count, created_at)
          select gen_random_uuid(), id, true, 1, case when n % 10 = 0 then 'alerts' else 'team' end, 'info', 'T', 'B',
            '/', 1, ${new Date()}
          from unnest(${accounts}::uuid[]) with ordinality a(id, n)`
        // Slow rows: reading all of them takes longer than one statement may.
        yield* owner`alter table notifications enable row level security`
        yield* owner`
          create policy slowly on notifications using (category <> 'alerts' or pg_sleep(0.03) is not null)`
        const told = yield* Deferred.make<void>()
        let missing = accounts.length
        for (const accountId of accounts) {
          const outlet = yield* open({ accountId, credential: nobody, lastEventId: "abc.0" })
          outlet.attach({
            write: (bytes) => {
              for (const { name } of eventsIn(bytes)) if (name === "notification") missing--
              if (missing === 0) Deferred.doneUnsafe(told, Effect.void)
              return true
            },
            end: () => {},
          })
        }
        yield* Deferred.await(told)
        yield* owner`alter table notifications disable row level security`
      }),
    60_000,
  )
})
