/**
 * Ownership moves: the domain's owner and workspace, the other accounts' SMTP credentials for it, its DKIM key where
 * that was asked. In the transaction of the transition, under the domain's lock; the platform hears of each on the bus.
 * The owner is held against the feed until the feed has echoed it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Subject } from "../../../schemas/bus/Subject.ts"
import type { Outbox } from "../../platform/Outbox.ts"
import type { Vault } from "../../platform/Vault.ts"
import { type DkimPair, keepPair } from "../DkimKeys.ts"
import type { TransferState } from "./state.ts"

export interface MoveServices {
  readonly sql: PgClient.PgClient
  readonly outbox: Outbox["Service"]
  readonly vault: Vault["Service"]
}

export const move = Effect.fnUntraced(
  function* ({ outbox, sql, vault }: MoveServices, state: TransferState, pair: DkimPair | null, now: number) {
    const { domainId, id: transferId, targetOrgId, targetUserId } = state
    const [domain] = yield* sql<{ name: string; dkim_selector: string; revision: bigint }>`
      update domains set account_id = ${targetUserId}::uuid, workspace_id = ${targetOrgId}::uuid, owner_held = true,
        dkim_selector = coalesce(${pair?.selector ?? null}::text, dkim_selector), updated_at = ${new Date(now)}
      where id = ${domainId}::uuid returning name, dkim_selector, revision`
    if (pair !== null) yield* keepPair(sql, vault, pair, { domainId, transferId, now })
    const revoked = yield* sql<{ id: string; domain_id: string; account_id: string }>`
      update smtp_credentials set locally_revoked_at = ${new Date(now)}
      where domain_id = ${domainId}::uuid and account_id <> ${targetUserId}::uuid and not removed
        and revoked_at is null and locally_revoked_at is null
      returning id::text as id, domain_id::text as domain_id, account_id::text as account_id`
    yield* outbox.add(
      {
        stream: "DIRECTORY",
        subject: `directory.v1.domain.${Subject.token(domainId)}`,
        payload: JSON.stringify({
          kind: "domain",
          id: domainId,
          name: domain!.name,
          account_id: targetUserId,
          workspace_id: targetOrgId,
          dkim_selector: domain!.dkim_selector,
          ...(pair === null ? {} : { dkim_algorithm: pair.algorithm, dkim_public_key: pair.publicKey }),
          transfer_id: transferId,
          revision: Number(domain!.revision),
        }),
      },
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
