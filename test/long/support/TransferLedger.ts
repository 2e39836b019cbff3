/** Checks of transfers during and after walks, against the receivers' own records. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { until } from "../../e2e/support/Until.ts"
import { type Cast, type Walk, ways } from "./Walks.ts"

/** No partial transition: each is there with all its rows, or not at all. */
export const whole = Effect.gen(function* () {
  const { sql } = yield* Database
  // The last statement of a killed process may still run.
  const busy = sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`
  yield* until("the last statement's end", busy, ([row]) => row!.n === 0)
  const torn = yield* sql`
    select t.id, t.status from transfers t join domains d on d.id = t.domain_id
    where (t.status in ('pending', 'accepted')) <>
        (select count(*) = 1 from timers where aggregate_id = t.id::text)
      or t.version * 2 <> (select count(*) from audit_records where details->>'transfer_id' = t.id::text)
      or t.version <> (select count(*) from outbox where aggregate_id = t.domain_id::text)
      or (t.status = 'completed') <> (d.account_id = t.target_user_id and d.owner_held)
      or (t.status = 'completed') <> exists (
        select from smtp_credentials where domain_id = d.id and locally_revoked_at is not null)
      or (t.status = 'completed') <> exists (
        select from outbox where subject = 'directory.v1.domain.' || d.id and payload::jsonb->>'transfer_id' = t.id::text)
      or not exists (select from mails where subject_id = t.id::text)
      or (t.rotate_dkim and t.status in ('accepted', 'completed')) <>
        (select count(*) = 1 from dkim_keys where transfer_id = t.id)
      or (t.rotate_dkim and t.status in ('accepted', 'completed')) <>
        exists (select from mails where subject_id = t.id::text and kind = 'transfer.key')
      or t.version * 2 <> (select count(*) from notifications where href = '/domain-transfers/' || t.id)`
  assert.deepStrictEqual(torn, [])
})

/** Ends the leases of a dead process, as if their time had passed. */
export const longAfter = Effect.gen(function* () {
  const { sql } = yield* Database
  for (const table of ["timers", "outbox", "mails", "slack_messages"]) {
    yield* sql`update ${sql(table)} set lease_until = now() - interval '1 second' where claim is not null`
  }
  yield* sql`update outbox_lanes set lease_until = now() - interval '1 second' where lease_until > now()`
})

/**
 * Ends all waits, also the ten minutes before a mail in doubt is repeated. Only once no process is killed any more:
 * after two attempts that were cut off nothing is promised about a mail.
 */
export const muchLater = Effect.gen(function* () {
  const { sql } = yield* Database
  for (const table of ["mails", "slack_messages"]) {
    yield* sql`update ${sql(table)} set not_before = now() where claim is null and not_before > now()`
  }
})

/** The state of all walks, for the message of a test that does not go on. */
export const standing = Effect.gen(function* () {
  const { sql } = yield* Database
  return {
    transfers: yield* sql`select domain_id::text, status, version::int from transfers order by id`,
    timers: yield* sql`select kind, due_at, not_before, attempts, last_error, claim::text, lease_until from timers`,
    mails: yield* sql`
      select kind, state, attempts, doubts, last_error, not_before, claim::text, lease_until from mails
      where not_before is not null or claim is not null`,
    outbox: yield* sql`select subject, attempts, last_error, not_before from outbox where published_at is null`,
  }
})

const counted = (texts: ReadonlyArray<string>) => {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

/** Waits until nothing is left to be done, and compares. */
export const close = Effect.fnUntraced(function* (cast: Cast, walks: ReadonlyArray<Walk>) {
  const { sql } = yield* Database
  const left = sql<{ mails: number; slack: number; outbox: number; timers: number }>`
    select (select count(*)::int from mails where not_before is not null) as mails,
      (select count(*)::int from slack_messages where state = 'pending') as slack,
      (select count(*)::int from outbox where published_at is null) as outbox,
      (select count(*)::int from timers) as timers`
  yield* until("the end of all work", left, ([row]) => Object.values(row!).every((n) => n === 0), 120)
  yield* whole

  for (const { domainId, kind, name } of walks) {
    const [domain] = yield* sql<{ account_id: string }>`
      select account_id::text as account_id from domains where id = ${domainId}::uuid`
    const moved = ways[kind].states.at(-1) === "completed"
    assert.strictEqual(domain!.account_id, moved ? cast.bob : cast.alice, name)
    const messages = yield* sql<{ status: string }>`
      select payload::jsonb->>'status' as status from outbox where aggregate_id = ${domainId} order by seq`
    assert.deepStrictEqual(messages.map(({ status }) => status), ways[kind].states, name)
    const mails = yield* sql<{ line: string }>`
      select replace(kind, 'transfer.', '') || case when recipient like ${`${cast.bob}%`} then ' bob' else ' alice' end as line
      from mails where subject_id = (select id::text from transfers where domain_id = ${domainId}::uuid)`
    assert.sameMembers(mails.map(({ line }) => line), [...ways[kind].mails], name)
  }

  const sent = yield* sql<{ message_id: string; doubts: number; state: string }>`
    select message_id, doubts, state from mails`
  const arrivals = counted(cast.arrived.map(({ mail }) => mail.messageId))
  for (const { doubts, message_id, state } of sent) {
    const times = arrivals.get(message_id) ?? 0
    assert.isAtLeast(times, 1, `${message_id} (${state}) was lost`)
    assert.isAtMost(times, 1 + doubts, `${message_id} came again`)
    assert.isAtMost(doubts, 1, `${message_id} was in doubt`)
  }
  assert.strictEqual(arrivals.size, sent.length)
  // The same message, but for the program's address in it.
  const textOf = ({ mail }: Cast["arrived"][number]) => mail.text.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "")
  const texts = new Map(cast.arrived.map((taken) => [taken.mail.messageId, textOf(taken)]))
  for (const taken of cast.arrived) assert.strictEqual(textOf(taken), texts.get(taken.mail.messageId))

  const posted = yield* sql<{ title: string; body: string; attempts: number; state: string }>`
    select title, body, attempts, state from slack_messages`
  for (const { attempts, body, state, title } of posted) {
    const times = cast.told.filter((text) => text.includes(title) && text.includes(body)).length
    assert.strictEqual(state, "sent")
    assert.isAtLeast(times, 1, `${title}: ${body}`)
    assert.isAtMost(times, attempts, `${title}: ${body}`)
  }
  assert.strictEqual(posted.length, walks.reduce((sum, { kind }) => sum + ways[kind].states.length, 0))
  const wrong = yield* sql`
    select account_id from inboxes i
    where total <> (select count(*) from notifications n where n.account_id = i.account_id and n.shown)`
  assert.deepStrictEqual(wrong, [])
})
