/**
 * Moves a domain to its new owner: sets owner and workspace, revokes other accounts' SMTP credentials for it, and
 * changes its DKIM key if the transfer asks for that. It is written with the transition, by a fenced write or in a
 * transaction that holds the domains' locks; messages on the bus inform the mail platform. Until the directory has
 * confirmed the new owner (`owner_held`), the directory's old owner does not overwrite it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { AccountId, DomainId, SmtpCredentialId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { DomainMoved, SmtpCredentialRevoked } from "../../../schemas/bus/Decisions.ts"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Fence } from "../../platform/database/UnitOfWork.ts"
import type { Outbox } from "../../platform/messaging/Outbox.ts"
import type { DkimKey } from "../DkimKeys.ts"
import type { Domain } from "./DecisionReads.ts"
import type { TransferState } from "./TransferState.ts"

export interface MoveServices {
  readonly sql: PgClient.PgClient
  readonly outbox: Outbox["Service"]
}

interface Moved {
  readonly id: DomainId
  readonly name: string
  readonly account_id: AccountId
  readonly workspace_id: WorkspaceId
  readonly dkim_selector: string
  readonly revision: bigint
}

export interface Move {
  /** The completed state. */
  readonly state: TransferState
  /** The domain's new key, which is already stored, or null. */
  readonly key: DkimKey | null
}

/** An SMTP credential that is, or was, live. */
export interface Credential {
  readonly id: SmtpCredentialId
  readonly domain_id: DomainId
  readonly account_id: AccountId
}

const live = "not removed and revoked_at is null and locally_revoked_at is null"

/** SQL for a load: as JSON, a domain's live credentials of all accounts but one. */
export const foreignTo = (sql: PgClient.PgClient, domainId: Statement.Fragment, accountId: Statement.Fragment) =>
  sql`(select coalesce(json_agg(c), '[]') from (
    select id, domain_id, account_id from smtp_credentials
    where domain_id = ${domainId} and account_id <> ${accountId} and ${sql.literal(live)} order by id) c)`

/** A domain that a fenced write moves. */
export interface Moving {
  /** The domain as loaded. */
  readonly domain: Domain
  readonly to: Move
  /** The live credentials of all accounts but the new owner, as loaded. */
  readonly credentials: ReadonlyArray<Credential>
}

/** The fence that moves the domain; each of the write's transitions raises its revision by one. */
export const moved = (
  sql: PgClient.PgClient,
  { domain, to: { key, state } }: Moving,
  transitions: number,
  now: number,
): Fence => ({
  rows: 1,
  statement: (earlier) =>
    sql`update domains set revision = revision + ${transitions}::int, account_id = ${state.targetUserId}::uuid,
        workspace_id = ${state.targetOrgId}::uuid, owner_held = true, dkim_selector = ${
      key?.selector ?? domain.selector
    },
        updated_at = ${new Date(now)}
      where id = ${domain.id}::uuid and revision = ${String(domain.revision)}::bigint and ${earlier} returning 1`,
})

/** The fence that revokes the credentials. New ones would have raised the domain's revision and failed its fence. */
export const revoking = (
  sql: PgClient.PgClient,
  { credentials }: Moving,
  now: number,
): ReadonlyArray<Fence> =>
  credentials.length === 0 ? [] : [{
    rows: credentials.length,
    statement: (earlier) =>
      sql`update smtp_credentials set locally_revoked_at = ${new Date(now)}
        where id = any(${credentials.map(({ id }) => id)}::uuid[]) and ${sql.literal(live)} and ${earlier} returning 1`,
  }]

/**
 * Revokes the SMTP credentials of all accounts but the new owners for these domains, and returns them. Called before
 * the transitions are written, since mails and notices name the accounts whose credentials were revoked.
 */
export const revoke = (
  sql: PgClient.PgClient,
  completed: ReadonlyArray<TransferState>,
  now: number,
): Effect.Effect<ReadonlyArray<Credential>, SqlError.SqlError> => {
  if (completed.length === 0) return Effect.succeed([])
  const owners = completed.map(({ domainId, targetUserId }) => ({ id: domainId, account_id: targetUserId }))
  return sql<Credential>`
    update smtp_credentials c set locally_revoked_at = ${new Date(now)}
    from json_to_recordset(${JSON.stringify(owners)}::json) r(id uuid, account_id uuid)
    where c.domain_id = any(${completed.map(({ domainId }) => domainId)}::uuid[]) and c.domain_id = r.id
      and c.account_id <> r.account_id and not c.removed and c.revoked_at is null and c.locally_revoked_at is null
    returning c.id::text as id, c.domain_id::text as domain_id, c.account_id::text as account_id`
}

/** The accounts whose credentials for the transfer's domain are among `revoked`. */
export const revokedFrom = (revoked: ReadonlyArray<Credential>, { domainId }: TransferState): ReadonlySet<AccountId> =>
  new Set(revoked.flatMap(({ account_id, domain_id }) => domain_id === domainId ? [account_id] : []))

const domainMessage = ({ key, state }: Move, { revision, ...domain }: Moved) => ({
  stream: "DIRECTORY" as const,
  subject: `directory.v1.domain.${Subject.token(domain.id)}`,
  payload: JSON.stringify(
    {
      kind: "domain",
      ...domain,
      ...(key === null ? {} : { dkim_algorithm: key.algorithm, dkim_public_key: key.publicKey }),
      transfer_id: state.id,
      revision: Number(revision),
    } satisfies DomainMoved,
  ),
})

const credentialMessage = (credential: Credential, now: number) => ({
  stream: "DIRECTORY" as const,
  subject: `directory.v1.smtp_credential.${Subject.token(credential.id)}`,
  payload: JSON.stringify(
    { kind: "smtp_credential", ...credential, revoked_at: new Date(now).toISOString() } satisfies SmtpCredentialRevoked,
  ),
})

/** The messages to the mail platform about a domain that a fenced write moves. */
export const messagesOf = ({ credentials, domain, to }: Moving, transitions: number, now: number) => [
  domainMessage(to, {
    id: domain.id,
    name: domain.name,
    account_id: to.state.targetUserId,
    workspace_id: to.state.targetOrgId!,
    dkim_selector: to.key?.selector ?? domain.selector,
    revision: domain.revision + BigInt(transitions),
  }),
  ...credentials.map((credential) => credentialMessage(credential, now)),
]

/** Moves the domains whose transfers were written as completed; `revoked`: from `revoke`. */
export const move = Effect.fnUntraced(
  function* (
    { outbox, sql }: MoveServices,
    moves: ReadonlyArray<Move>,
    revoked: ReadonlyArray<Credential>,
    now: number,
  ) {
    if (moves.length === 0) return
    const byDomain = new Map(moves.map((one) => [one.state.domainId, one]))
    const domainIds = [...byDomain.keys()]
    const targets = JSON.stringify(moves.map(({ key, state }) => ({
      id: state.domainId,
      account_id: state.targetUserId,
      workspace_id: state.targetOrgId,
      selector: key?.selector,
    })))
    const rows = yield* sql<Moved>`
      update domains d set account_id = r.account_id, workspace_id = r.workspace_id, owner_held = true,
        dkim_selector = coalesce(r.selector, d.dkim_selector), updated_at = ${new Date(now)}
      from json_to_recordset(${targets}::json) r(id uuid, account_id uuid, workspace_id uuid, selector text)
      where d.id = any(${domainIds}::uuid[]) and d.id = r.id
      returning d.id::text as id, d.name, d.account_id::text as account_id, d.workspace_id::text as workspace_id,
        d.dkim_selector, d.revision`
    yield* outbox.add(
      ...rows.map((domain) => domainMessage(byDomain.get(domain.id)!, domain)),
      ...revoked.map((credential) => credentialMessage(credential, now)),
    )
  },
)
