/**
 * Stops the program while all work with claims is in progress: deliveries and their retries, outbox rows, mails, timers
 * of transfers, Slack messages, jobs, provider jobs, pushes to streams. Afterwards no lease may be held: a new process
 * would have to wait for its end before doing that work.
 */
import { Effect, Queue } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { addressOf, owner } from "../../e2e/ClusterFixture.ts"
import { until } from "../../e2e/support/Until.ts"
import { fixture } from "../../e2e/support/ProgramFixture.ts"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"
import { push, pushed, receiving, stream, subjects, tellAll } from "../../services/event-streams/StreamFixture.ts"
import { start } from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { testSmtp } from "../../support/TestSmtp.ts"
import { testKeys } from "../../support/TestVault.ts"
import { traffic } from "./Traffic.ts"

/** From SIGTERM to the end of the process; orchestrators kill after 10 s and more. */
export const stopMillis = 10_000

/** The state after one stop. */
export interface Left {
  readonly code: number | null
  readonly tookMillis: number
  /** By table, rows whose lease is held. */
  readonly held: Readonly<Record<string, number>>
  readonly interrupted: number
  readonly output: string
}

/** Every table with leases, from the catalogue: new tables are checked as well. */
const leasedTables = Effect.gen(function* () {
  const { owner } = yield* Database
  return yield* owner<{ table: string; column: string }>`
    select c.relname as table, a.attname as column from pg_attribute a
    join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
    where c.relnamespace = 'public'::regnamespace and a.attname in ('lease_until', 'recovering_until')
    order by c.relname`
})

const heldLeases = Effect.gen(function* () {
  const { owner } = yield* Database
  const held: Record<string, number> = {}
  for (const { column, table } of yield* leasedTables) {
    const [row] = yield* owner<{ n: number }>`
      select count(*)::int as n from ${owner(table)} where ${owner(column)} is not null`
    if (row!.n > 0) held[table] = row!.n
  }
  return held
})

const interruptedAttempts = Effect.gen(function* () {
  const { owner } = yield* Database
  const [row] = yield* owner<{ n: number }>`select count(*)::int as n from attempts where error = 'interrupted'`
  return row!.n
})

/** Copies one pending transfer, each copy with a domain of its own and due within half a second. */
const transfers = Effect.fnUntraced(function* (madeId: string, count: number) {
  const { owner } = yield* Database
  yield* owner`
    with made as (select * from transfers where id = ${madeId}::uuid), fresh as (
      select gen_random_uuid() as domain_id, gen_random_uuid() as id,
        now() + random() * interval '500 milliseconds' as due
      from generate_series(1, ${count}::int)
    ), d as (
      insert into domains (id, version, removed, updated_at, name, account_id, workspace_id, verified_at, dkim_selector)
      select f.domain_id, 1, false, d.updated_at, f.domain_id || '.example', d.account_id, d.workspace_id, d.verified_at,
        'old'
      from fresh f, domains d join made on d.id = made.domain_id
    ), t as (
      insert into transfers
      select (jsonb_populate_record(t, jsonb_build_object('id', f.id, 'domain_id', f.domain_id, 'status', 'pending',
        'expires_at', f.due, 'accept_hash', sha256(f.id::text::bytea)))).*
      from fresh f, transfers t join made using (id)
    )
    insert into timers (aggregate_id, kind, due_at, not_before)
    select f.id::text, k.kind, f.due, f.due from fresh f, (
      select kind from timers where aggregate_id = ${madeId} limit 1) k`
})

/** Rows of claimed work other than that of the walks above. */
const rows = Effect.fnUntraced(function* (accountId: string) {
  const { owner } = yield* Database
  yield* owner`
    insert into outbox (id, stream, subject, payload, created_at, not_before)
    select gen_random_uuid(), 'MAIL_OUT', 'mailer.v1.send', json_build_object('mail_id', gen_random_uuid()), now(), now()
    from generate_series(1, 3000)`
  yield* owner`
    insert into jobs (id, kind, args, created_at, not_before)
    select gen_random_uuid(), 'webhooks.replay', json_build_object('webhook_id', gen_random_uuid(),
      'status', 'delivered', 'from', gen_random_uuid(), 'to', gen_random_uuid()), now(), now()
    from generate_series(1, 200)`
  yield* owner`
    insert into provider_jobs (id, kind, project_id, state, reference, created_at, updated_at, not_before)
    select gen_random_uuid(), 'client.update', gen_random_uuid()::text, 'pending', 'r', now(), now(), now()
    from generate_series(1, 100)`
  yield* owner`
    insert into slack_messages (id, account_id, severity, title, body, href, created_at, not_before)
    select gen_random_uuid(), ${accountId}::uuid, 'warning', 'T', 'B', '/x', now(), now() from generate_series(1, 200)`
})

/** Work that waits for a program, and how far a program has come with it. */
export const stops = Effect.gen(function* () {
  const database = yield* TestDatabase
  const { url: natsUrl } = yield* TestBus
  const smtp = yield* testSmtp()
  let mails = 0
  yield* Effect.forkScoped(Effect.forever(Effect.map(Queue.take(smtp.taken), () => void mails++)))
  let posts = 0
  const slack = yield* serve((request, response) => {
    request.resume().on("end", () => {
      posts++
      setTimeout(() => response.writeHead(200).end("ok"), 20)
    })
  })
  const around = yield* fixture({
    BAILIWICK_KEYS: testKeys,
    PUBLIC_URL: "https://id.example",
    SMTP_URL: smtp.url,
    MAIL_FROM: "no-reply@mail.example",
    SLACK_HOSTS: "localhost",
    INITIATE_TRANSFER_RATE: "10000",
    WEBHOOKS_RETRY_DELAYS: Array(8).fill("200 millis").join(","),
  }, { database, natsUrl })
  const flow = yield* traffic(around)
  const [from, to] = yield* Effect.all([owner(around, 1), owner(around, 0)], { concurrency: 2 })
  const offered = yield* from.at(around.instance).post(`/v1/domains/${from.domains[0]}/transfer`, {
    target_email: addressOf(to.id),
  })
  const { owner: sql } = yield* Database
  yield* sql`update accounts set slack_webhook_url = ${`http://localhost:${slack.port}/x`} where id = ${flow.account.id}::uuid`
  yield* around.instance.end("SIGTERM")

  const scenes = yield* Effect.forEach(Array(6), () =>
    Effect.gen(function* () {
      const scene = yield* receiving
      const { arrivals, url } = yield* pushed()
      yield* stream(scene, push(url()))
      return { arrivals, scene }
    }))

  const seen = {
    deliveries: () => flow.target.hits.length,
    mails: () => mails,
    slack: () => posts,
    pushes: () => scenes.reduce((sum, { arrivals }) => sum + arrivals.length, 0),
  }
  const signs = Object.keys(seen) as ReadonlyArray<keyof typeof seen>

  /** Adds work of every kind, starts a program, and stops it in the middle of the work. */
  const stop = Effect.fnUntraced(function* (round: number) {
    yield* flow.publish(600)
    yield* transfers(offered.json.id, 300)
    yield* rows(flow.account.id)
    yield* Effect.forEach(scenes, ({ scene }) => tellAll(scene, subjects(40, `r${round}-`)))
    const before = yield* interruptedAttempts
    const sign = signs[round % signs.length]!
    const from = seen[sign]()
    // Another moment of the work each time.
    const enough = 1 + Math.round((round * 0.618 % 1) * (sign === "deliveries" ? 400 : 40))
    const program = yield* start({ env: around.env })
    yield* until(`${enough} ${sign}`, Effect.sync(() => seen[sign]() - from), (n) => n >= enough)
    const asked = performance.now()
    yield* program.kill("SIGTERM")
    const code = yield* program.exited
    const tookMillis = Math.round(performance.now() - asked)
    const left: Left = {
      code,
      tookMillis,
      held: yield* heldLeases,
      output: program.output(),
      interrupted: (yield* interruptedAttempts) - before,
    }
    console.log(`stop ${round} at ${enough} ${sign}: ${JSON.stringify({ ...left, output: undefined })}`)
    // The next stop is checked by itself.
    for (const { column, table } of yield* leasedTables) {
      const past = new Date(0)
      yield* sql`update ${sql(table)} set ${sql(column)} = ${past} where ${sql(column)} is not null`
    }
    return left
  }, Effect.scoped)

  return { stop, leasedTables }
})
