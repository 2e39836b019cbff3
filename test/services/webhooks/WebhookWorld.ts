/** What tests of webhooks stand on: every service of the domain over a database and a broker account of the file's own. */
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { setTimeout } from "node:timers/promises"
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Notifications } from "../../../services/notifications/Notifications.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { RejectedMessages } from "../../../services/platform/messaging/RejectedMessages.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { CountCompaction } from "../../../services/webhooks/CountCompaction.ts"
import { Deliveries } from "../../../services/webhooks/Deliveries.ts"
import { accept, acceptAll, type Accepted } from "../../../services/webhooks/Deliveries/CreateDeliveries.ts"
import { claim, claimDue } from "../../../services/webhooks/Deliveries/DeliveryClaims.ts"
import { DeliveryRecords } from "../../../services/webhooks/DeliveryRecords.ts"
import { Endpoints } from "../../../services/webhooks/Endpoints.ts"
import { EventIntake } from "../../../services/webhooks/EventIntake.ts"
import { Listeners } from "../../../services/webhooks/Listeners.ts"
import { Partitions, type RetentionConfig } from "../../../services/webhooks/Partitions.ts"
import { Replays } from "../../../services/webhooks/Replays.ts"
import type { RetrySchedule } from "../../../services/webhooks/RetrySchedule.ts"
import { specified } from "../../../services/webhooks/RetrySchedule.ts"
import { Sender } from "../../../services/webhooks/Sender.ts"
import { Settlement } from "../../../services/webhooks/Settlement.ts"
import type { Result, Task } from "../../../services/webhooks/Sender/Task.ts"
import { WebhookJobs } from "../../../services/webhooks/WebhookJobs.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import { account, ground } from "../../support/TestAccounts.ts"

/** A day in which nothing special happens: a TestClock begins in 1970, where no UUIDv7 day lies before. */
export const dayMillis = 24 * 60 * 60_000
export const lease = 30_000

const ring = JSON.stringify({ active: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } })

export const retention = { deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 }

export interface WorldConfig {
  readonly schedule?: RetrySchedule
  readonly timeoutMillis?: number
  readonly perAccount?: number
  readonly retention?: RetentionConfig
  /** What gives the world its time; a TestClock at noon where nothing is said. */
  readonly clock?: Layer.Layer<never>
}

export const world = ({ schedule = specified, timeoutMillis = 10_000, ...rest }: WorldConfig = {}) => {
  const kept = rest.retention ?? retention
  return Layer.mergeAll(
    EventIntake.layer.pipe(
      Layer.provideMerge(Deliveries.layer({ timeoutMillis })),
      Layer.provideMerge(Settlement.layer({ timeoutMillis, schedule })),
      Layer.provideMerge(Sender.layer({ timeoutMillis })),
    ),
    Webhooks.layer({ perAccount: rest.perAccount ?? 100 }),
    WebhookJobs.layer.pipe(Layer.provideMerge(Replays.layer)),
    CountCompaction.layer,
    Partitions.layer(kept),
    DeliveryRecords.layer(kept),
  ).pipe(
    Layer.provideMerge(Layer.merge(Endpoints.layer, Listeners.layer)),
    Layer.provideMerge(Principals.layer),
    Layer.provideMerge(
      Layer.mergeAll(Jobs.layer, Notifications.layer, RejectedMessages.layer, RateLimits.layer, KeyUses.layer),
    ),
    Layer.provide(Cookies.layer([])),
    Layer.provideMerge(Layer.mergeAll(
      Vault.layer({ keys: Redacted.make(ring), file: "/nowhere" }),
      Outbound.layer({ allowedCidrs: ["127.0.0.0/8"], certificateAuthorities: [], timeoutMillis, ownPorts: [] }),
    )),
    Layer.provideMerge(ground),
    Layer.provideMerge(rest.clock ?? Layer.effectDiscard(TestClock.setTime(noon))),
  )
}

/** Settles until its scope ends; the Sender stops for good with it. */
export const settling = Layer.effectDiscard(Effect.flatMap(Settlement, ({ settling }) => Effect.forkScoped(settling)))

/** The loops of a process that delivers: claims as there is room, and settles. */
export const working = Layer.provideMerge(
  Layer.effectDiscard(Effect.flatMap(Deliveries, ({ feeding }) => Effect.forkScoped(feeding(Effect.succeed(true))))),
  settling,
)

/** A clock that stands at `millis()`, while sleeps are those of `sleep`. */
const standing = (millis: () => number, sleep: Clock.Clock["sleep"]): Clock.Clock => ({
  currentTimeMillisUnsafe: millis,
  currentTimeMillis: Effect.sync(millis),
  currentTimeNanosUnsafe: () => BigInt(millis()) * 1_000_000n,
  currentTimeNanos: Effect.sync(() => BigInt(millis()) * 1_000_000n),
  monotonicTimeNanosUnsafe: () => BigInt(millis()) * 1_000_000n,
  monotonicTimeNanos: Effect.sync(() => BigInt(millis()) * 1_000_000n),
  sleep,
})

/** Runs at another moment; no loop wakes for it, as all of them would if a TestClock went there. */
export const on = (millis: number) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.provideService(effect, Clock.Clock, standing(() => millis, (duration) => clock.sleep(duration)))
  )

/** A clock that stands still until it is set, though sleeps are real: days pass in an instant, loops go on working. */
export const stoppedClock = () => {
  let at = noon
  const real = Context.get(Context.empty(), Clock.Clock)
  const clock = standing(() => at, (duration) => real.sleep(duration))
  return { layer: Layer.succeed(Clock.Clock, clock), set: (millis: number) => Effect.sync(() => void (at = millis)) }
}

export const now = Effect.clockWith((clock) => clock.currentTimeMillis)

/** A new account with one webhook, which listens to `events`. */
export const webhook = Effect.fnUntraced(
  function* (
    options: { readonly url?: string; readonly events?: ReadonlyArray<EventType>; readonly of?: string } = {},
  ) {
    const accountId = options.of ?? (yield* account({ plan: "business" }))
    const { url = "http://127.0.0.1:20999/", events = ["email.delivered"] as const } = options
    const made = yield* (yield* Webhooks).create(accountId, { url, events })
    return { accountId, ...made }
  },
)

const bodyOf = (id: string) =>
  JSON.stringify({
    event: "email.delivered",
    email_id: id,
    recipient: "pat@example.com",
    timestamp: "2026-03-10T11:59:59.000Z",
    metadata: { subject: "Hi", tag: null, domain: "example.com", smtp_response: "250 OK" },
  })

let events = 0
/** An event that was not there before. */
export const event = (accountId: string, fields: Partial<Accepted> = {}): Accepted => {
  const sourceId = `e${events++}`
  return { sourceId, accountId, event: "email.delivered", body: bodyOf(sourceId), ...fields }
}

/** Accepts without a Sender: the first `slots` deliveries are born claimed. */
export const take = (taken: ReadonlyArray<Accepted>, slots = Infinity) =>
  Effect.gen(function* () {
    const { quick, sql } = yield* Database
    const [endpoints, listeners] = [yield* Endpoints, yield* Listeners]
    let left = slots
    const acceptor = { sql, quick, endpoints, listeners, lease, reserve: () => left-- > 0, release: () => left++ }
    return yield* acceptAll((some, hold) => accept(acceptor, some, hold), taken)
  })

/** Settles results in one batch, as the program does; gives those that it did, with what became of each. */
export const settle = (results: ReadonlyArray<Result>) => Effect.flatMap(Settlement, (all) => all.settle(results))

/** What an attempt came to. */
export const resultOf = (task: Result["task"], startedAt: number, fields: Partial<Result> = {}): Result => ({
  task,
  ending: "answered",
  startedAt,
  durationMs: 7,
  status: 200,
  error: null,
  body: "ok",
  url: "http://127.0.0.1:20999/",
  ...fields,
})

export const failed = (task: Task, startedAt: number) => resultOf(task, startedAt, { status: 500, body: "no" })

/** The owner of everything, as DeliveryRecords and Webhooks know a session. */
export const session = (accountId: string) => ({ via: "cookie", accountId, authTime: null }) as const

export const count = Effect.fnUntraced(function* (table: string, where = "true") {
  const { owner } = yield* Database
  const [row] = yield* owner.unsafe<{ n: number }>(`select count(*)::int as n from ${table} where ${where}`)
  return row!.n
})

/** Active webhooks with a delivery that waits, whose lane points later than it and than the next announcement. */
export const stranded = Effect.gen(function* () {
  const { sql } = yield* Database
  const again = new Date((yield* now) + 30_000)
  return yield* sql`
    select l.webhook_id, l.next_due_at, min(q.due_at) as due_at
    from webhook_lanes l join delivery_queue q on q.webhook_id = l.webhook_id and q.claim is null
    where not l.paused group by l.webhook_id
    having l.next_due_at is null or l.next_due_at > greatest(min(q.due_at), ${again})`
})

/** Two thousand looks, soon after each other at first: whoever is slow gets most of a minute. */
const looking = (between: Effect.Effect<void>) => <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.suspend(() => {
    let looks = 0
    return Effect.promise(() => setTimeout(looks++ < 500 ? 2 : 30)).pipe(
      Effect.andThen(between),
      Effect.andThen(holds),
      Effect.repeat({ until: (held) => held, times: 2_000 }),
      Effect.map((held) => assert.isTrue(held, "it did not come about")),
    )
  })

/** Waits for what sockets and settlements bring about: real time goes by, and the TestClock by 5 ms a look. */
export const comes = looking(TestClock.adjust(5))

/** The same where the clock is not a TestClock. */
export const comesByItself = looking(Effect.void)

/** Webhooks and statuses whose count is not the number of their deliveries: none, after whatever happened. */
export const miscounted = Effect.gen(function* () {
  const { sql } = yield* Database
  return yield* sql`
    with counted as (
      select webhook_id, status, sum(n)::int as n from delivery_counts group by 1, 2 having sum(n) <> 0
    ), real as (
      select webhook_id, status, count(*)::int as n from (
        select webhook_id, status from deliveries where status <> 'dead_letter'
        union all select webhook_id, 'dead_letter' from dead_letters
      ) d group by 1, 2
    )
    select webhook_id, status, c.n as counted, r.n as real from counted c full join real r using (webhook_id, status)
    where c.n is distinct from r.n`
})

/** Claims what is due of these, as a Dispatcher with room for all of it would. */
export const claimAll = Effect.fnUntraced(function* (deliveryIds: ReadonlyArray<string>) {
  const { sql } = yield* Database
  return yield* claim({ sql, endpoints: yield* Endpoints, lease, giveBack: () => {} }, deliveryIds)
})

/** Claims the longest due of these webhooks, `count` of each, as a Dispatcher that works off their backlogs. */
export const claimBacklog = Effect.fnUntraced(function* (
  webhooks: ReadonlyArray<{ readonly id: string; readonly accountId: string }>,
  count: number,
) {
  const { sql } = yield* Database
  const fed = webhooks.map(({ accountId, id }) => ({ webhookId: id, accountId, count }))
  return yield* claimDue({ sql, endpoints: yield* Endpoints, lease, giveBack: () => {} }, fed)
})
