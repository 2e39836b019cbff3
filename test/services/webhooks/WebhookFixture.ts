/** Fixture of webhook tests: all services of the domain with a database and a broker account of the test file's own. */
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { setTimeout } from "node:timers/promises"
import { type AccountId, type DeliveryId, SourceEventId, type WebhookId } from "../../../schemas/BrandedIds.ts"
import { FullDeliveryRecord } from "../../../schemas/mail/Delivery.ts"
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import type { BasicAuth, CustomHeader } from "../../../schemas/mail/WebhookHeaders.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Notifications } from "../../../services/notifications/Notifications.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { Jobs } from "../../../services/platform/messaging/Jobs.ts"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { Idempotency } from "../../../services/platform/security/Idempotency.ts"
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
import { WaitingDeliveries } from "../../../services/webhooks/WaitingDeliveries.ts"
import { WebhookHolds } from "../../../services/webhooks/WebhookHolds.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { noon } from "../../support/Fixtures.ts"
import { account, ground } from "../../support/TestAccounts.ts"

export const dayMillis = 24 * 60 * 60_000
export const lease = 30_000

const ring = JSON.stringify({ active: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } })

const full = Schema.decodeUnknownSync(Schema.fromJsonString(FullDeliveryRecord))

export const retention = { deliveredDays: 30, deadLetterDays: 90, intakeMemoryDays: 400 }

/** The replays, each of whose commands runs in a transaction of its own. */
export const replays = Effect.map(Replays, ({ count, many, one, test }) => ({
  count,
  many: (...asked: Parameters<typeof many>) => Effect.flatMap(many(...asked), (command) => run(command)),
  one: (...asked: Parameters<typeof one>) => Effect.flatMap(one(...asked), (command) => run(command)),
  test: (...asked: Parameters<typeof test>) => Effect.flatMap(test(...asked), (command) => run(command)),
}))

export interface FixtureConfig {
  readonly schedule?: RetrySchedule
  readonly timeoutMillis?: number
  readonly perAccount?: number
  readonly retention?: RetentionConfig
  /** The clock; default: a TestClock at noon. */
  readonly clock?: Layer.Layer<never>
}

export const fixture = ({ schedule = specified, timeoutMillis = 10_000, ...rest }: FixtureConfig = {}) => {
  const kept = rest.retention ?? retention
  return Layer.mergeAll(
    EventIntake.layer.pipe(
      Layer.provideMerge(Deliveries.layer({ timeoutMillis })),
      Layer.provideMerge(Settlement.layer({ timeoutMillis, schedule })),
      Layer.provideMerge(Sender.layer({ timeoutMillis })),
    ),
    Webhooks.layer({ perAccount: rest.perAccount ?? 100 }),
    WebhookJobs.layer.pipe(Layer.provideMerge(Replays.layer)),
    WaitingDeliveries.layer,
    WebhookHolds.layer,
    Idempotency.layer,
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

/** Settles until its scope ends; then the Sender stops for good. */
export const settling = Layer.effectDiscard(Effect.flatMap(Settlement, ({ settling }) => Effect.forkScoped(settling)))

/** The loops of a process that delivers: claiming and settling. */
export const working = Layer.provideMerge(
  Layer.effectDiscard(Effect.flatMap(Deliveries, ({ claiming }) => Effect.forkScoped(claiming(Effect.succeed(true))))),
  settling,
)

/** A clock with the time `millis()`, which sleeps by `sleep`. */
const clockAt = (millis: () => number, sleep: Clock.Clock["sleep"]): Clock.Clock => ({
  currentTimeMillisUnsafe: millis,
  currentTimeMillis: Effect.sync(millis),
  currentTimeNanosUnsafe: () => BigInt(millis()) * 1_000_000n,
  currentTimeNanos: Effect.sync(() => BigInt(millis()) * 1_000_000n),
  monotonicTimeNanosUnsafe: () => BigInt(millis()) * 1_000_000n,
  monotonicTimeNanos: Effect.sync(() => BigInt(millis()) * 1_000_000n),
  sleep,
})

/** Runs an effect at another time; unlike a change of the TestClock, this wakes no loop. */
export const on = (millis: number) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.provideService(effect, Clock.Clock, clockAt(() => millis, (duration) => clock.sleep(duration)))
  )

/** A clock whose time changes only by `set`, with real sleeps: days pass at once while loops go on. */
export const stoppedClock = () => {
  let at = noon
  const real = Context.get(Context.empty(), Clock.Clock)
  const clock = clockAt(() => at, (duration) => real.sleep(duration))
  return { layer: Layer.succeed(Clock.Clock, clock), set: (millis: number) => Effect.sync(() => void (at = millis)) }
}

export const now = Effect.clockWith((clock) => clock.currentTimeMillis)

/** A new account with one webhook that subscribes to `events`. */
export const webhook = Effect.fnUntraced(
  function* (
    options: {
      readonly url?: string
      readonly events?: ReadonlyArray<EventType>
      readonly of?: AccountId
      readonly headers?: ReadonlyArray<CustomHeader>
      readonly basicAuth?: BasicAuth
      readonly rateLimit?: number
      readonly isActive?: boolean
    } = {},
  ) {
    const accountId = options.of ?? (yield* account({ plan: "business" }))
    const { of: _, url = "http://127.0.0.1:20999/", events = ["email.delivered"] as const, ...more } = options
    const made = yield* (yield* Webhooks).create(accountId, { url, events, ...more })
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
/** A new event; `sourceId` is any text. */
export const event = (
  accountId: AccountId,
  { sourceId = `e${events++}`, ...fields }: Partial<Omit<Accepted, "sourceId"> & { readonly sourceId: string }> = {},
): Accepted => ({
  sourceId: SourceEventId.make(sourceId),
  accountId,
  event: "email.delivered",
  body: bodyOf(sourceId),
  ...fields,
})

/** Accepts events without a Sender: the first `slots` deliveries are inserted already claimed. */
export const take = (taken: ReadonlyArray<Accepted>, slots = Infinity) =>
  Effect.gen(function* () {
    const { quick, sql } = yield* Database
    const [endpoints, listeners] = [yield* Endpoints, yield* Listeners]
    let left = slots
    const acceptor = { sql, quick, endpoints, listeners, lease, reserve: () => left-- > 0, release: () => left++ }
    return yield* acceptAll((some, lock) => accept(acceptor, some, lock), taken)
  })

/**
 * Settles results in one batch, as the program does; returns those whose claim was the row's, each with its outcome.
 */
export const settle = (results: ReadonlyArray<Result>) => Effect.flatMap(Settlement, (all) => all.settle(results))

/** The result of an attempt; default: a 200 after 7 ms. */
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

/** A session of the account. */
export const session = (accountId: AccountId) => ({ via: "cookie", accountId, authTime: null }) as const

export const count = Effect.fnUntraced(function* (table: string, where = "true") {
  const { owner } = yield* Database
  const [row] = yield* owner.unsafe<{ n: number }>(`select count(*)::int as n from ${table} where ${where}`)
  return row!.n
})

/**
 * Active webhooks whose queue state is due later than a waiting delivery and than the next announcement: no scan finds
 * it.
 */
export const stranded = Effect.gen(function* () {
  const { sql } = yield* Database
  const again = new Date((yield* now) + 30_000)
  return yield* sql`
    select l.webhook_id, l.next_due_at, min(q.due_at) as due_at
    from webhook_lanes l join delivery_queue q on q.webhook_id = l.webhook_id and q.claim is null
    where not l.paused group by l.webhook_id
    having l.next_due_at is null or l.next_due_at > greatest(min(q.due_at), ${again})`
})

/** Checks a condition up to 2,000 times, at first every 2 ms: at most about a minute. */
const polling = (between: Effect.Effect<void>) => <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.suspend(() => {
    let checks = 0
    return Effect.promise(() => setTimeout(checks++ < 500 ? 2 : 30)).pipe(
      Effect.andThen(between),
      Effect.andThen(holds),
      Effect.repeat({ until: (met) => met, times: 2_000 }),
      Effect.map((met) => assert.isTrue(met, "it did not come about")),
    )
  })

/** Waits for a condition that sockets and settlements cause: in real time, with 5 ms of the TestClock per check. */
export const comes = polling(TestClock.adjust(5))

/** The same without a TestClock. */
export const comesByItself = polling(Effect.void)

/** Webhooks and statuses whose count is not the number of their deliveries; always none. */
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

/** Every count is the number of its deliveries, and a scan finds every delivery that waits. */
export const lawful = Effect.gen(function* () {
  assert.deepStrictEqual(yield* miscounted, [])
  assert.deepStrictEqual(yield* stranded, [])
})

/** Works off the jobs of webhooks; none of them may have failed. */
export const workJobs = Effect.gen(function* () {
  const { workers } = yield* WebhookJobs
  yield* Effect.repeat((yield* Jobs).work(workers), { while: (more) => more })
  const { sql } = yield* Database
  assert.deepStrictEqual(yield* sql`select last_error from jobs where last_error is not null`, [])
})

/** A delivery's whole record, as its account reads it. */
export const recordOf = Effect.fnUntraced(function* (accountId: AccountId, id: DeliveryId) {
  return full(yield* (yield* DeliveryRecords).get(accountId, id))
})

/** Claims those of these deliveries that are due, as a dispatcher with room for all of them. */
export const claimAll = Effect.fnUntraced(function* (deliveryIds: ReadonlyArray<DeliveryId>) {
  const { sql } = yield* Database
  return yield* claim({ sql, endpoints: yield* Endpoints, lease, giveBack: () => {} }, deliveryIds)
})

/** Claims due deliveries of these webhooks, `count` of each, the longest due first, as `BacklogClaims` does. */
export const claimBacklog = Effect.fnUntraced(function* (
  webhooks: ReadonlyArray<{ readonly id: WebhookId; readonly accountId: AccountId }>,
  count: number,
) {
  const { sql } = yield* Database
  const reserved = webhooks.map(({ accountId, id }) => ({ webhookId: id, accountId, count }))
  return yield* claimDue({ sql, endpoints: yield* Endpoints, lease, giveBack: () => {} }, reserved)
})
