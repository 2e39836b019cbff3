/** Final check of transferred domains: rows, owners, audit, timers, the stream, mails and inboxes agree. */
import { assert } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { Effect, type Redacted } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { until } from "../../e2e/support/Until.ts"
import { connected } from "../../support/Broker.ts"
import type { ProcessWalks } from "./ProcessWalks.ts"

/** By ending: the steps on the way, and the mails that are sent. */
const books = {
  completed: {
    events: ["pending", "accepted", "completed"],
    letters: ["transfer.invitation", "transfer.stop", "transfer.completed", "transfer.completed"],
  },
  cancelled: { events: ["pending", "cancelled"], letters: ["transfer.invitation", "transfer.cancelled"] },
  declined: { events: ["pending", "declined"], letters: ["transfer.invitation", "transfer.declined"] },
} as const

const counted = (items: ReadonlyArray<string>) =>
  Object.fromEntries([...Map.groupBy(items, (item) => item)].map(([item, all]) => [item, all.length]).sort())

const rowsOf = Effect.fnUntraced(function* ({ walked }: ProcessWalks) {
  const { sql } = yield* Database
  const rows = yield* sql<{ id: string; owner: string; ended: ReadonlyArray<string> }>`
    select d.id::text as id, d.account_id::text as owner, array_agg(t.status order by t.id) as ended
    from domains d join transfers t on t.domain_id = d.id group by d.id`
  const byId = (a: { readonly id: string }, b: { readonly id: string }) => a.id < b.id ? -1 : 1
  const expected = walked.map(({ domainId, ended, owner }) => ({ id: domainId, owner, ended }))
  assert.deepStrictEqual([...rows].sort(byId), [...expected].sort(byId))
  const left = yield* sql<{ n: number }>`select count(*)::int as n from timers where kind like 'transfer.%'`
  assert.strictEqual(left[0]!.n, 0, "timers of what has ended")
})

const auditOf = Effect.fnUntraced(function* (events: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const audited = yield* sql<{ status: string; side: string; n: number; transfers: number }>`
    select details->>'status' as status, details->>'side' as side, count(*)::int as n,
      count(distinct details->>'transfer_id')::int as transfers
    from audit_records where action like 'domain-transfer.%' and outcome = 'done' group by 1, 2`
  const expected = counted(events)
  for (const side of ["source", "target"]) {
    const rows = audited.filter((row) => row.side === side)
    assert.deepStrictEqual(Object.fromEntries(rows.map(({ n, status }) => [status, n]).sort()), expected, side)
    assert.deepStrictEqual(rows.filter(({ n, transfers }) => n !== transfers), [], "written twice")
  }
})

/** Each domain's messages come in order without a gap; a message may come again. */
const streamOf = Effect.fnUntraced(function* (natsUrl: Redacted.Redacted, { walked }: ProcessWalks, seconds: number) {
  const { sql } = yield* Database
  const unpublished = sql<{ n: number }>`select count(*)::int as n from outbox where published_at is null`
  yield* until("everything said", unpublished, ([row]) => row!.n === 0, seconds)
  const said = yield* connected(natsUrl, async (connection) => {
    const consumer = await jetstream(connection).consumers.get("TRANSFERS")
    const { num_pending: pending } = await consumer.info()
    const messages: Array<{ readonly domain: string; readonly status: string; readonly seq: number }> = []
    while (messages.length < pending) {
      for await (const { headers, subject } of await consumer.fetch({ max_messages: 1_000, expires: 2_000 })) {
        const [, , domain, status] = subject.split(".")
        messages.push({ domain: domain!, status: status!, seq: Number(headers!.get("Bailiwick-Seq")) })
      }
    }
    return messages
  })
  const byDomain = Map.groupBy(said, ({ domain }) => domain)
  for (const { domainId, ended } of walked) {
    const messages = byDomain.get(domainId) ?? []
    const first = messages.filter(({ seq }, n) => !messages.slice(0, n).some((before) => before.seq === seq))
    assert.deepStrictEqual(first.map(({ status }) => status), ended.flatMap((ending) => [...books[ending].events]))
    assert.isTrue(first.every(({ seq }, n) => n === 0 || seq > first[n - 1]!.seq), `${domainId} out of order`)
  }
  return said.length
})

/** A mail's claim lasts three minutes: until then a killed process's mails belong to no other process. */
const young = 165_000

/** All mails of transfers are there, and sent except those of a killed process. */
const mailOf = Effect.fnUntraced(function* (letters: ReadonlyArray<string>, seconds: number) {
  const { sql } = yield* Database
  const waiting = Effect.suspend(() =>
    sql<{ n: number }>`
      select count(*)::int as n from mails
      where kind like 'transfer.%' and state = 'pending' and (claim is null or lease_until > ${new Date(
      Date.now() + young,
    )})`
  )
  yield* until("every letter sent", waiting, ([row]) => row!.n === 0, seconds)
  const rows = yield* sql<{ kind: string; state: string; n: number }>`
    select kind, state, count(*)::int as n from mails where kind like 'transfer.%' group by 1, 2`
  const kinds = [...Map.groupBy(rows, ({ kind }) => kind)]
  assert.deepStrictEqual(
    Object.fromEntries(kinds.map(([kind, states]) => [kind, states.reduce((sum, { n }) => sum + n, 0)]).sort()),
    counted(letters),
  )
  const states = Object.fromEntries(rows.map(({ n, state }) => [state, n]))
  assert.notProperty(states, "failed")
  return rows.filter(({ state }) => state !== "sent").reduce((sum, { n }) => sum + n, 0)
})

/** Inboxes of accounts that had transfers: these read nothing. */
const inboxesOf = Effect.fnUntraced(function* (events: number) {
  const { sql } = yield* Database
  const rows = yield* sql<{ total: number; unread: number; notices: number }>`
    select i.total, i.unread, (select count(*)::int from notifications n where n.account_id = i.account_id and n.shown) as notices
    from inboxes i where exists (
      select from notifications n where n.account_id = i.account_id and n.href like '/domain-transfers/%')`
  assert.deepStrictEqual(rows.filter(({ notices, total, unread }) => total !== notices || unread !== notices), [])
  const [told] = yield* sql<{ n: number }>`
    select count(*)::int as n from notifications where href like '/domain-transfers/%'`
  assert.strictEqual(told!.n, 2 * events, "both sides of each event")
})

/** Whether the database server went down and recovered: its counters begin again then. */
const crashedSince = Effect.fnUntraced(function* (begun: Date) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ crashed: boolean }>`select stats_reset > ${begun} as crashed from pg_stat_wal`
  return row!.crashed
})

/** Checks everything, and returns what a kill left behind; waits `seconds` for messages, and again for mails. */
export const close = Effect.fnUntraced(function* (
  walks: ProcessWalks,
  natsUrl: Redacted.Redacted,
  begun: Date,
  seconds = 180,
) {
  const crashed = yield* crashedSince(begun)
  assert.isTrue(crashed || walks.broken() === 0, `${walks.broken()} answers of 500, and the database was well`)
  const ended = walks.walked.flatMap((walk) => walk.ended)
  const events = ended.flatMap((ending) => [...books[ending].events])
  yield* rowsOf(walks)
  yield* auditOf(events)
  yield* inboxesOf(events.length)
  const said = yield* streamOf(natsUrl, walks, seconds)
  const unknown = yield* mailOf(ended.flatMap((ending) => [...books[ending].letters]), seconds)
  return { transfers: ended.length, events: events.length, said, unknown, crashed }
})
