/** Reads transfers from rows, and writes them under the version that was read. */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect } from "effect"
import { Buffer } from "node:buffer"
import type { AccountId, CommandId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { TransferStatus } from "../../../schemas/mail/Transfer.ts"
import type { IssuedToken } from "../../platform/security/OneTimeTokens.ts"
import { idIn } from "../../platform/database/IdIn.ts"
import type { TransferState } from "./TransferState.ts"
import { Conflict, type Fence } from "../../platform/database/UnitOfWork.ts"

export interface Row {
  readonly id: TransferId
  readonly version: number
  readonly command_id: CommandId
  readonly domain_id: DomainId
  readonly domain_name: string
  readonly source_user_id: AccountId
  readonly source_org_id: WorkspaceId
  readonly source_label: string
  readonly initiated_by: AccountId
  readonly target_user_id: AccountId
  readonly target_email: string
  readonly target_org_id: WorkspaceId | null
  readonly status: TransferStatus
  readonly note: string | null
  readonly rotate_dkim: boolean
  readonly forced: boolean
  readonly initiated_at: Date
  readonly expires_at: Date
  readonly accepted_at: Date | null
  readonly cooloff_until: Date | null
  readonly completed_at: Date | null
  readonly accept_used: boolean
  readonly stop_used: boolean
}

/** The columns of a `Row`. */
export const transferColumns =
  `id::text as id, version, command_id::text as command_id, domain_id::text as domain_id, domain_name,
  source_user_id::text as source_user_id, source_org_id::text as source_org_id, source_label,
  initiated_by::text as initiated_by, target_user_id::text as target_user_id, target_email,
  target_org_id::text as target_org_id, status, note, rotate_dkim, forced, initiated_at, expires_at, accepted_at,
  cooloff_until, completed_at, accept_used, stop_used`

export interface Stored {
  readonly state: TransferState
  readonly version: number
  /** The command that wrote this version. */
  readonly commandId: CommandId
}

/** The tokens that a change issues. */
export interface Tokens {
  readonly accept?: IssuedToken
  readonly stop?: IssuedToken
}

export const storedOf = (row: Row): Stored => ({
  version: row.version,
  commandId: row.command_id,
  state: {
    id: row.id,
    domainId: row.domain_id,
    domainName: row.domain_name,
    sourceUserId: row.source_user_id,
    sourceOrgId: row.source_org_id,
    sourceLabel: row.source_label,
    initiatedBy: row.initiated_by,
    targetUserId: row.target_user_id,
    targetEmail: row.target_email,
    targetOrgId: row.target_org_id,
    status: row.status,
    note: row.note,
    rotateDkim: row.rotate_dkim,
    forced: row.forced,
    initiatedAt: row.initiated_at.getTime(),
    expiresAt: row.expires_at.getTime(),
    acceptedAt: row.accepted_at?.getTime() ?? null,
    cooloffUntil: row.cooloff_until?.getTime() ?? null,
    completedAt: row.completed_at?.getTime() ?? null,
    acceptUsed: row.accept_used,
    stopUsed: row.stop_used,
  },
})

export interface Written {
  /** The loaded row; null for a new one. */
  readonly before: Stored | null
  readonly state: TransferState
  readonly commandId: CommandId
  readonly tokens: Tokens
  /** The domain's revision as loaded; null: any. */
  readonly revision: bigint | null
}

const dateOrNull = (millis: number | null) => millis === null ? null : new Date(millis)

/** A `bytea` as JSON. */
const bytes = (value: Uint8Array | undefined) => value === undefined ? null : `\\x${Buffer.from(value).toString("hex")}`

/** The columns that a transition may change, as JSON. */
const changing = (state: TransferState, commandId: CommandId) => ({
  command_id: commandId,
  target_org_id: state.targetOrgId,
  status: state.status,
  rotate_dkim: state.rotateDkim,
  accepted_at: dateOrNull(state.acceptedAt),
  cooloff_until: dateOrNull(state.cooloffUntil),
  completed_at: dateOrNull(state.completedAt),
  accept_used: state.acceptUsed,
  stop_used: state.stopUsed,
})

/** Columns of tokens; null keeps the old value. */
const issued = ({ accept, stop }: Tokens) => ({
  accept_kid: accept?.kid ?? null,
  accept_nonce: bytes(accept?.nonce),
  accept_hash: bytes(accept?.hash),
  stop_kid: stop?.kid ?? null,
  stop_nonce: bytes(stop?.nonce),
  stop_hash: bytes(stop?.hash),
})

const newRow = ({ commandId, state, tokens }: Written) => ({
  id: state.id,
  version: 1,
  domain_id: state.domainId,
  domain_name: state.domainName,
  source_user_id: state.sourceUserId,
  source_org_id: state.sourceOrgId,
  source_label: state.sourceLabel,
  initiated_by: state.initiatedBy,
  target_user_id: state.targetUserId,
  target_email: state.targetEmail,
  note: state.note,
  forced: state.forced,
  initiated_at: new Date(state.initiatedAt),
  expires_at: new Date(state.expiresAt),
  ...changing(state, commandId),
  ...issued(tokens),
})

const rewrite = ({ state: { id }, version }: Stored, { commandId, state, tokens }: Written) => ({
  key: { id, version: version + 1 },
  changed: changing(state, commandId),
  given: issued(tokens),
})

export const rows = (sql: PgClient.PgClient) => {
  const columns = sql.literal(transferColumns)

  const updated = (changes: Array.NonEmptyReadonlyArray<ReturnType<typeof rewrite>>) => {
    const [{ changed, given }] = changes
    const assigned = sql.literal([
      ...Object.keys(changed).map((column) => `${column} = r.${column}`),
      ...Object.keys(given).map((column) => `${column} = coalesce(r.${column}, t.${column})`),
    ].join(", "))
    const rows = JSON.stringify(changes.map(({ changed, given, key }) => ({ ...key, ...changed, ...given })))
    // By id beside the JSON, of which the planner assumes a hundred elements; so are the fences of `write`.
    const those = idIn(sql, "t.id", "uuid", changes.map(({ key }) => key.id))
    return sql`update transfers t set version = r.version, ${assigned}
      from json_populate_recordset(null::transfers, ${rows}::json) r
      where ${those} and t.id = r.id and t.version = r.version - 1`
  }

  const inserted = (made: Array.NonEmptyReadonlyArray<ReturnType<typeof newRow>>) => {
    const names = sql.literal(Object.keys(made[0]).join(", "))
    return sql`insert into transfers (${names})
      select ${names} from json_populate_recordset(null::transfers, ${JSON.stringify(made)}::json)`
  }

  const all = Effect.map((found: ReadonlyArray<Row>) => found.map(storedOf))
  const one = Effect.map((found: ReadonlyArray<Row>) => found[0] === undefined ? null : storedOf(found[0]))

  return {
    /** Reads without a lock, for callers that check again under a lock. */
    byId: (id: TransferId) => one(sql<Row>`select ${columns} from transfers where id = ${id}::uuid`),
    byToken: (kind: "accept" | "stop", hash: Uint8Array) =>
      one(sql<Row>`select ${columns} from transfers where ${sql(`${kind}_hash`)} = ${hash}`),
    liveOf: (domainId: DomainId) =>
      one(sql<Row>`
        select ${columns} from transfers where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')`),
    lockById: (id: TransferId) => one(sql<Row>`select ${columns} from transfers where id = ${id}::uuid for update`),
    byIds: (ids: ReadonlyArray<TransferId>) =>
      all(sql<Row>`select ${columns} from transfers where id = any(${[...ids]}::uuid[])`),
    lockByIds: (ids: ReadonlyArray<TransferId>) =>
      all(sql<Row>`select ${columns} from transfers where id = any(${[...ids]}::uuid[]) order by id for update`),
    /** Locks those that no other transaction has locked. */
    lockFree: (ids: ReadonlyArray<TransferId>) =>
      all(sql<Row>`
        select ${columns} from transfers where id = any(${[...ids]}::uuid[]) order by id for update skip locked`),
    /** The transfer that this command created, or null. */
    madeBy: (domainId: DomainId, commandId: CommandId) =>
      one(sql<Row>`
        select ${columns} from transfers
        where domain_id = ${domainId}::uuid and command_id = ${commandId}::uuid
        order by id desc limit 1`),

    /** The fence that writes one change's row: a new row, or the row at the version that was read. */
    fence: (change: Written): Fence => {
      const { before } = change
      return {
        rows: 1,
        statement: (earlier) =>
          before === null
            ? sql`${inserted([newRow(change)])} where ${earlier} returning 1`
            : sql`${updated([rewrite(before, change)])} and ${earlier} returning 1`,
      }
    },

    /**
     * Writes rows (new ones, and others under the version that was read) and raises their domains' revisions, in one
     * statement. Returns the new revisions by domain. Fails with Conflict if a row or a domain has changed.
     */
    write: Effect.fnUntraced(function* (changes: Array.NonEmptyReadonlyArray<Written>) {
      const fences = changes.map(({ revision, state }) => ({ id: state.domainId, revision: revision?.toString() }))
      const made = changes.flatMap((change) => change.before === null ? [newRow(change)] : [])
      const rewritten = changes.flatMap((change) => change.before === null ? [] : [rewrite(change.before, change)])
      const fenced = idIn(sql, "d.id", "uuid", fences.map(({ id }) => id))
      const parts = [
        sql`fences as (
          update domains d set revision = d.revision + 1
          from json_to_recordset(${JSON.stringify(fences)}::json) r(id uuid, revision bigint)
          where ${fenced} and d.id = r.id and d.revision = coalesce(r.revision, d.revision)
          returning d.id::text as domain_id, d.revision)`,
        ...(Array.isReadonlyArrayNonEmpty(rewritten) ? [sql`rewritten as (${updated(rewritten)} returning 1)`] : []),
        ...(Array.isReadonlyArrayNonEmpty(made) ? [sql`made as (${inserted(made)} returning 1)`] : []),
      ]
      const count = sql.literal([
        ...(rewritten.length === 0 ? [] : ["(select count(*)::int from rewritten)"]),
        ...(made.length === 0 ? [] : ["(select count(*)::int from made)"]),
      ].join(" + "))
      const raised = yield* sql<{ domain_id: DomainId; revision: bigint; rows: number }>`
        with ${sql.join(", ", false)(parts)} select domain_id, revision, ${count} as rows from fences`
      if (raised.length < changes.length || raised[0]?.rows !== changes.length) return yield* new Conflict()
      return new Map(raised.map(({ domain_id, revision }) => [domain_id, revision])) as ReadonlyMap<DomainId, bigint>
    }),
  }
}
export type Rows = ReturnType<typeof rows>
