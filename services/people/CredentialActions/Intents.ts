/**
 * Intents: pending → completed | failed (five invalid proofs) | expired (600 s) | superseded (a newer intent of the
 * same kind and target). Secrets of an intent are sealed, and deleted when it ends.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, type Redacted } from "effect"
import { createHash, timingSafeEqual } from "node:crypto"
import type { IntentId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { ActionKind } from "../../../schemas/identity/CredentialAction.ts"
import { IntentExpired, InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import type { Sealed, Vault } from "../../platform/security/Vault.ts"

export interface Intent {
  readonly id: IntentId
  readonly kind: ActionKind
  readonly target_id: string | null
  readonly label: string | null
  readonly state: "pending" | "completed" | "failed" | "expired" | "superseded"
  readonly expires_at: Date
  readonly binding: Uint8Array | null
  readonly challenge: string | null
  readonly kid: string | null
  readonly secret: Uint8Array | null
}

/** The problem for an intent that has ended already. */
export const endedAs = (state: string) =>
  state === "expired" ? new IntentExpired() : new InvalidState({ state, allowed: ["pending"] })

export const mostBadProofs = 5

const bindingOf = (text: string): Uint8Array => new Uint8Array(createHash("sha256").update(text).digest())

/** Whether a request with this portal binding may complete the intent. */
export const isBound = ({ binding }: Pick<Intent, "binding">, brought: string | undefined): boolean =>
  binding === null || brought !== undefined && timingSafeEqual(binding, bindingOf(brought))

export interface NewIntent {
  readonly id: IntentId
  readonly personId: PersonId
  readonly kind: ActionKind
  readonly targetId: string | null
  readonly label: string | null
  readonly binding: string | undefined
  readonly challenge: string | null
  readonly secret: Redacted.Redacted | null
  readonly now: Date
  readonly expiresAt: Date
}

export const intents = (sql: PgClient.PgClient, vault: Vault["Service"]) => {
  const cellOf = (row: string) => ({ table: "credential_intents", column: "secret", row })

  /** Adds an intent; ends an open one of the same kind and target. */
  const add = Effect.fnUntraced(function* (intent: NewIntent) {
    const { expiresAt, id, kind, label, now, personId, targetId } = intent
    yield* sql`
      update credential_intents set ended_at = ${now}, challenge = null, kid = null, secret = null,
        state = case when expires_at <= ${now} then 'expired' else 'superseded' end
      where person_id = ${personId} and kind = ${kind} and coalesce(target_id, '') = ${targetId ?? ""}
        and state = 'pending'`
    const sealed: Sealed | null = intent.secret === null ? null : vault.seal(intent.secret, cellOf(id))
    const binding = intent.binding === undefined ? null : bindingOf(intent.binding)
    yield* sql`
      insert into credential_intents (id, person_id, kind, target_id, label, state, created_at, expires_at, binding,
        challenge, kid, secret)
      values (${id}::uuid, ${personId}, ${kind}, ${targetId}::text, ${label}::text, 'pending', ${now}, ${expiresAt},
        ${binding}::bytea, ${intent.challenge}::text, ${sealed?.kid ?? null}::text, ${sealed?.bytes ?? null}::bytea)`
  })

  /** A person's intent, locked, or null. */
  const hold = Effect.fnUntraced(function* (personId: PersonId, id: IntentId) {
    if (!isUuid(id)) return null
    const [found] = yield* sql<Intent>`
      select id::text, kind, target_id, label, state, expires_at, binding, challenge, kid, secret
      from credential_intents where id = ${id}::uuid and person_id = ${personId} for update`
    return found ?? null
  })

  /**
   * Ends expired intents, at most 10,000, and deletes their secrets, so that no old key of the ring is needed for them.
   */
  const expire = (now: Date) =>
    sql`update credential_intents set state = 'expired', ended_at = ${now}, challenge = null, kid = null, secret = null
      where id in (
        select id from credential_intents where state = 'pending' and expires_at <= ${now} limit 10000 for update skip locked
      ) returning 1`

  const complete = (id: IntentId, now: Date) =>
    sql`update credential_intents
      set state = 'completed', ended_at = ${now}, challenge = null, kid = null, secret = null
      where id = ${id}::uuid and state = 'pending'`

  /** Counts an invalid proof; returns the state after it, and whether it counted: the intent may have ended before. */
  const countBadProof = Effect.fnUntraced(function* (id: IntentId, now: Date) {
    const [row] = yield* sql<{ state: Intent["state"] }>`
      update credential_intents set bad_proofs = bad_proofs + 1,
        state = case when bad_proofs + 1 >= ${mostBadProofs} then 'failed' else state end,
        ended_at = case when bad_proofs + 1 >= ${mostBadProofs} then ${now}::timestamptz end,
        challenge = case when bad_proofs + 1 >= ${mostBadProofs} then null else challenge end,
        kid = case when bad_proofs + 1 >= ${mostBadProofs} then null else kid end,
        secret = case when bad_proofs + 1 >= ${mostBadProofs} then null else secret end
      where id = ${id}::uuid and state = 'pending' returning state`
    if (row !== undefined) return { state: row.state, counted: true }
    const [ended] = yield* sql<{ state: Intent["state"] }>`select state from credential_intents where id = ${id}::uuid`
    return { state: ended!.state, counted: false }
  })

  /** The seed of an app that is being enrolled. */
  const secretOf = ({ id, kid, secret }: Intent): Redacted.Redacted =>
    vault.open({ kid: kid!, bytes: secret! }, cellOf(id))

  return { add, hold, expire, complete, countBadProof, secretOf }
}
export type Intents = ReturnType<typeof intents>
