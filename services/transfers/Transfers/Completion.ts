/**
 * Ownership moves: the domain's owner and workspace, the other accounts' SMTP credentials for it, its DKIM key where
 * that was asked. In the transaction of the transitions, under the domains' locks; the platform hears of each on the bus.
 * The owner is held against the feed until the feed has echoed it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Outbox } from "../../platform/messaging/Outbox.ts"
import type { DkimKey } from "../DkimKeys.ts"
import type { TransferState } from "./TransferState.ts"

export interface MoveServices {
  readonly sql: PgClient.PgClient
  readonly outbox: Outbox["Service"]
}

interface Moved {
  readonly id: string
  readonly name: string
  readonly account_id: string
  readonly workspace_id: string
  readonly dkim_selector: string
  readonly revision: bigint
}

export interface Move {
  /** As it is once it is completed. */
  readonly state: TransferState
  /** The domain's new key, which is kept already. */
  readonly key: DkimKey | null
}

interface Revoked {
  readonly id: string
  readonly domain_id: string
  readonly account_id: string
}

/**
 * Revokes the SMTP credentials that other accounts than the new owners have for these domains. Called before the
 * transitions are written, since their letters and notices say whose were revoked.
 */
export const revoke = (
  sql: PgClient.PgClient,
  completed: ReadonlyArray<TransferState>,
  now: number,
): Effect.Effect<ReadonlyArray<Revoked>, SqlError.SqlError> => {
  if (completed.length === 0) return Effect.succeed([])
  const owners = completed.map(({ domainId, targetUserId }) => ({ id: domainId, account_id: targetUserId }))
  return sql<Revoked>`
    update smtp_credentials c set locally_revoked_at = ${new Date(now)}
    from json_to_recordset(${JSON.stringify(owners)}::json) r(id uuid, account_id uuid)
    where c.domain_id = any(${completed.map(({ domainId }) => domainId)}::uuid[]) and c.domain_id = r.id
      and c.account_id <> r.account_id and not c.removed and c.revoked_at is null and c.locally_revoked_at is null
    returning c.id::text as id, c.domain_id::text as domain_id, c.account_id::text as account_id`
}

/** The accounts whose credentials for the transfer's domain are among `revoked`. */
export const revokedFrom = (revoked: ReadonlyArray<Revoked>, { domainId }: TransferState): ReadonlySet<string> =>
  new Set(revoked.flatMap(({ account_id, domain_id }) => domain_id === domainId ? [account_id] : []))

/** Moves the domains whose transfers were written as completed; `revoked` is what `revoke` gave for them. */
export const move = Effect.fnUntraced(
  function* (
    { outbox, sql }: MoveServices,
    moves: ReadonlyArray<Move>,
    revoked: ReadonlyArray<Revoked>,
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
    const moved = yield* sql<Moved>`
      update domains d set account_id = r.account_id, workspace_id = r.workspace_id, owner_held = true,
        dkim_selector = coalesce(r.selector, d.dkim_selector), updated_at = ${new Date(now)}
      from json_to_recordset(${targets}::json) r(id uuid, account_id uuid, workspace_id uuid, selector text)
      where d.id = any(${domainIds}::uuid[]) and d.id = r.id
      returning d.id::text as id, d.name, d.account_id::text as account_id, d.workspace_id::text as workspace_id,
        d.dkim_selector, d.revision`
    yield* outbox.add(
      ...moved.map(({ revision, ...domain }) => {
        const { key, state } = byDomain.get(domain.id)!
        return {
          stream: "DIRECTORY" as const,
          subject: `directory.v1.domain.${Subject.token(domain.id)}`,
          payload: JSON.stringify({
            kind: "domain",
            ...domain,
            ...(key === null ? {} : { dkim_algorithm: key.algorithm, dkim_public_key: key.publicKey }),
            transfer_id: state.id,
            revision: Number(revision),
          }),
        }
      }),
      ...revoked.map((credential) => ({
        stream: "DIRECTORY" as const,
        subject: `directory.v1.smtp_credential.${Subject.token(credential.id)}`,
        payload: JSON.stringify({
          kind: "smtp_credential",
          ...credential,
          revoked_at: new Date(now).toISOString(),
        }),
      })),
    )
  },
)
