/**
 * The yardstick of transitions: each is one SQL statement, sent by a loop that does nothing else. It moves the row
 * under its version, raises the domain's fence, rewrites the timer, writes both audit records and the message of the
 * stream. An order is a line of JSON: which transition, of which numbers.
 */
import "../../../src/process/HideAsyncHooks.ts"
import postgres from "postgres"
import process from "node:process"
import { createInterface } from "node:readline"
import { accountId, domainId, emailOf, recipientOf, transferId, workspaceId } from "../../harness/TransferSeed.ts"
import { say, variable } from "../ChildProtocol.ts"

type Kind = "initiate" | "accept" | "expire" | "complete"

export interface Order {
  readonly kinds: ReadonlyArray<Kind>
  readonly count: number
}

const inFlight = 16

const told = `audited as (
    insert into audit_records (id, at, action, actor, subject, outcome, details)
    select gen_random_uuid(), now(), 'domain-transfer', 'system', 'account:' || a, 'done',
      json_build_object('transfer_id', t.id, 'domain_id', t.domain_id)::jsonb
    from t, unnest(array[t.source_user_id, t.target_user_id]) a
  )
  insert into outbox (id, stream, subject, payload, aggregate_id, seq, created_at, not_before)
  select gen_random_uuid(), 'TRANSFERS', 'transfers.v1.' || t.domain_id || '.' || t.status,
    json_build_object('id', t.id, 'domain_id', t.domain_id, 'status', t.status, 'source_user_id', t.source_user_id,
      'target_user_id', t.target_user_id)::text, t.domain_id::text, fence.revision, now(), now()
  from t, fence`

const fence = (set: string) =>
  `fence as (
    update domains set revision = revision + 1${set} where id = $2::uuid returning revision
  )`

/** $1 the transfer, $2 the domain, $3 the new owner, $4 the new owner's workspace. */
const settled = (status: string, set: string, domain: string) => `
  with ${fence(domain)}, t as (
    update transfers set version = version + 1, status = '${status}'${set}
    where id = $1::uuid and status in ('pending', 'accepted') and $3::uuid is not null and $4::uuid is not null
    returning *
  ), gone as (delete from timers where aggregate_id = $1::uuid::text), ${told}`

const statements: Readonly<Record<Kind, string>> = {
  initiate: `
    with ${fence("")}, t as (
      insert into transfers (id, version, command_id, domain_id, domain_name, source_user_id, source_org_id,
        source_label, initiated_by, target_user_id, target_email, status, rotate_dkim, forced, initiated_at, expires_at,
        accept_hash)
      select $1::uuid, 1, gen_random_uuid(), d.id, d.name, d.account_id, d.workspace_id, 'Account', d.account_id,
        $3::uuid, $5, 'pending', false, false, now(), now() + interval '7 days', sha256($1::uuid::text::bytea)
      from domains d where d.id = $2::uuid and $4::uuid is not null returning *
    ), timer as (
      insert into timers (aggregate_id, kind, due_at, not_before)
      select id::text, 'transfer.expire', expires_at, expires_at from t
    ), ${told}`,
  accept: `
    with ${fence("")}, t as (
      update transfers set version = version + 1, status = 'accepted', target_org_id = $4::uuid, accepted_at = now(),
        cooloff_until = now() + interval '1 day', stop_hash = sha256($1::uuid::text::bytea)
      where id = $1::uuid and status = 'pending' and $3::uuid is not null returning *
    ), gone as (delete from timers where aggregate_id = $1::uuid::text and kind = 'transfer.expire'), timer as (
      insert into timers (aggregate_id, kind, due_at, not_before)
      select id::text, 'transfer.complete', cooloff_until, cooloff_until from t
    ), ${told}`,
  expire: settled("expired", "", ""),
  complete: settled(
    "completed",
    ", completed_at = now(), cooloff_until = null",
    ", account_id = $3::uuid, workspace_id = $4::uuid, owner_held = true",
  ),
}

const sql = postgres(variable("DATABASE_URL"), { max: inFlight, onnotice: () => {} })

const run = async ({ count, kinds }: Order) => {
  let next = 0
  const worker = async () => {
    for (let n = next++; n < count; n = next++) {
      const values = [transferId(n), domainId(n), accountId(recipientOf(n)), workspaceId(recipientOf(n))]
      for (const kind of kinds) {
        await sql.unsafe(statements[kind], kind === "initiate" ? [...values, emailOf(recipientOf(n))] : values, {
          prepare: true,
        })
      }
    }
  }
  const from = performance.now()
  await Promise.all(Array.from({ length: inFlight }, worker))
  say("done", { seconds: (performance.now() - from) / 1000 })
}

createInterface({ input: process.stdin }).on("line", (line) => void run(JSON.parse(line)))
  .on("close", () => process.exit(0))
await sql`select 1`
say("ready", {})
