/** Accounts with a workspace and an API key each, their domains, and transfers that are due at a given moment. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { Database } from "../../services/platform/database/Database.ts"
import type { Fixture } from "./Servers.ts"

/** The domain of number n belongs to account n mod `accounts`, and goes to an account half of them away. */
export const accounts = 2_000
export const recipientOf = (n: number): number => n + accounts / 2

const uuid = (prefix: string, n: string) => `('${prefix}0000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

const idOf = (prefix: string, n: number) => `${prefix}0000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`

export const accountId = (n: number): string => idOf("aaaa", n % accounts)
export const workspaceId = (n: number): string => idOf("bbbb", n % accounts)
/** The transfer that `due` makes of domain n. */
export const transferId = (n: number): string => idOf("eeee", n)
export const domainId = (n: number): string => idOf("dddd", n)
export const emailOf = (n: number): string => `${n % accounts}@example.com`
/** An API key of account n; its hash is in the database. */
export const keyOf = (n: number): string => `mail_k_${String(n % accounts).padStart(43, "0")}`

/** Accounts, workspaces, memberships and keys, and `domains` domains. */
export const fill = (domains: number) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    const a = (n: string) => sql.literal(uuid("aaaa", n))
    const w = (n: string) => sql.literal(uuid("bbbb", n))
    yield* sql`insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
      select ${a("n")}, 1, false, now(), n || '@example.com', 'Account ' || n, 'business', false, 'active'
      from generate_series(0, ${accounts - 1}::int) n`
    yield* sql`insert into workspaces (id, version, removed, updated_at, name, created_at)
      select ${w("n")}, 1, false, now(), 'W', '2020-01-01' from generate_series(0, ${accounts - 1}::int) n`
    yield* sql`insert into workspace_memberships (id, version, removed, updated_at, workspace_id, account_id, role)
      select gen_random_uuid(), 1, false, now(), ${w("n")}, ${a("n")}, 'owner'
      from generate_series(0, ${accounts - 1}::int) n`
    const hashes = Array.from({ length: accounts }, (_, n) => createHash("sha256").update(keyOf(n)).digest("hex"))
    yield* sql`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
      select gen_random_uuid(), ${a("k.n - 1")}, 'bench', decode(k.hash, 'hex'), 'mail_k_', array['send'], true, now()
      from unnest(${hashes}::text[]) with ordinality k(hash, n)`
    yield* sql`insert into domains (id, version, removed, updated_at, name, account_id, workspace_id, verified_at,
        dkim_selector)
      select ${sql.literal(uuid("dddd", "n"))}, 1, false, now(), 'd' || n || '.example',
        ${a(`n % ${accounts}`)}, ${w(`n % ${accounts}`)}, '2025-01-01', 'old'
      from generate_series(0, ${domains - 1}::int) n`
    yield* sql`analyze`
  })

/**
 * Transfers of the first `count` domains, from each owner to the other account, whose timers are due at `at`: offers
 * that expire, or accepted ones that complete.
 */
export const due = (sql: Fixture["sql"], status: "pending" | "accepted", count: number, at: Date) =>
  Effect.gen(function* () {
    const [a, w] = [(n: string) => sql.literal(uuid("aaaa", n)), (n: string) => sql.literal(uuid("bbbb", n))]
    const accepted = status === "accepted"
    const [from, to] = [`n % ${accounts}`, `(n + ${accounts / 2}) % ${accounts}`]
    yield* sql`insert into transfers (id, version, command_id, domain_id, domain_name, source_user_id, source_org_id,
        source_label, initiated_by, target_user_id, target_email, target_org_id, status, rotate_dkim, forced,
        initiated_at, expires_at, accepted_at, cooloff_until, accept_hash, stop_hash)
      select ${sql.literal(uuid("eeee", "n"))}, 1, gen_random_uuid(), ${sql.literal(uuid("dddd", "n"))},
        'd' || n || '.example', ${a(from)}, ${w(from)}, 'Account', ${a(from)}, ${a(to)},
        ${sql.literal(to)} || '@example.com', ${accepted ? w(to) : sql.literal("null")}, ${status}, false, false,
        ${at}::timestamptz - interval '7 days', ${at}::timestamptz + ${accepted ? "1 day" : "0 days"}::interval,
        ${accepted ? at : null}::timestamptz - interval '1 day', ${accepted ? at : null}::timestamptz,
        sha256(n::text::bytea), ${accepted ? sql.literal("sha256(n::text::bytea)") : sql.literal("null")}
      from generate_series(0, ${count - 1}::int) n`
    yield* sql`insert into timers (aggregate_id, kind, due_at, not_before)
      select ${sql.literal(uuid("eeee", "n"))}::text, ${
      accepted ? "transfer.complete" : "transfer.expire"
    }, ${at}, ${at}
      from generate_series(0, ${count - 1}::int) n`
  })

/** Timers that are far from due, of transfers that no statement asks for. */
export const pending = (sql: Fixture["sql"], count: number) =>
  sql`insert into timers (aggregate_id, kind, due_at, not_before)
    select ${sql.literal(uuid("ffff", "n"))}::text, 'transfer.expire', t.at, t.at
    from generate_series(0, ${count - 1}::int) n,
      lateral (select now() + interval '1 day' + n * interval '1 second' as at) t`
