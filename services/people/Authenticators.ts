/**
 * The authenticators of a person, in addition to the issuer's own: passkeys, security keys, apps, recovery codes. The
 * first three are second factors (aal2), and the last of a person's second factors cannot be removed: to make this
 * safe, every change of an authenticator locks all rows of the person.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, type Redacted } from "effect"
import type { SqlError } from "effect/sql"
import type { AuthenticatorId, PersonId } from "../../schemas/BrandedIds.ts"
import type { AuthenticatorKind, AuthenticatorView, CredentialType } from "../../schemas/identity/CredentialAction.ts"
import { Database } from "../platform/database/Database.ts"
import { adding } from "./Authenticators/AddAuthenticator.ts"
import { removing } from "./Authenticators/RemoveAuthenticators.ts"
import { replacingCodes } from "./Authenticators/ReplaceCodes.ts"
import type { Registered } from "./Authenticators/Webauthn.ts"

export { removing } from "./Authenticators/RemoveAuthenticators.ts"

export interface Authenticator {
  readonly id: AuthenticatorId
  readonly kind: AuthenticatorKind
  readonly label: string
  readonly created_at: Date
  readonly last_used_at: Date | null
  readonly credential_id: string | null
  readonly aaguid: string | null
  readonly transports: ReadonlyArray<string>
  readonly platform: boolean | null
  readonly backup_eligible: boolean | null
  readonly backup_state: boolean | null
  readonly codes_remaining: number | null
}

const strongKinds: ReadonlySet<AuthenticatorKind> = new Set(["passkey", "security_key", "totp"])

/** Whether an authenticator makes a sign-in aal2. */
export const isStrong = ({ kind }: Pick<Authenticator, "kind">): boolean => strongKinds.has(kind)

export const credentialTypeOf = ({ kind, platform }: Pick<Authenticator, "kind" | "platform">): CredentialType => {
  if (kind === "totp") return "app"
  if (kind === "recovery_codes") return "recovery-codes"
  return kind === "password" ? kind : platform === true ? "fido2-platform" : "fido2-roaming"
}

/**
 * Why an authenticator cannot be removed, or null. Recovery codes are replaced, and a password belongs to the issuer.
 */
export const keptFor = (
  one: Authenticator,
  all: ReadonlyArray<Authenticator>,
): "last_authenticator" | "policy" | null =>
  !isStrong(one) ? "policy" : all.filter(isStrong).length > 1 ? null : "last_authenticator"

export const viewOf = (one: Authenticator, all: ReadonlyArray<Authenticator>): AuthenticatorView => {
  const reason = keptFor(one, all)
  return {
    authenticator_id: one.id,
    kind: one.kind,
    credential_type: credentialTypeOf(one),
    label: one.label,
    created_at: one.created_at.toISOString(),
    last_used_at: one.last_used_at?.toISOString() ?? null,
    aaguid: one.aaguid,
    transports: one.transports,
    backup_eligible: one.backup_eligible,
    backup_state: one.backup_state,
    codes_remaining: one.codes_remaining,
    removable: reason === null,
    not_removable_reason: reason,
  }
}

/** Deletes an authenticator that was removed in the lost time, during recovery; returns whether it was there. */
export const dropAuthenticator = (sql: PgClient.PgClient, id: string) =>
  Effect.map(sql`delete from authenticators where id = ${id}::uuid returning 1`, (gone) => gone.length > 0)

type InTransaction<A> = Effect.Effect<A, SqlError.SqlError>

export class Authenticators extends Context.Service<Authenticators, {
  /** All authenticators of a person, oldest first. */
  readonly of: (personId: PersonId) => InTransaction<ReadonlyArray<Authenticator>>
  /** The same, their rows locked to the end of the current transaction. */
  readonly hold: (personId: PersonId) => InTransaction<ReadonlyArray<Authenticator>>
  /** Adds a registered credential, in the current transaction; null where a person has that credential already. */
  readonly addWebauthn: (personId: PersonId, label: string, made: Registered) => InTransaction<AuthenticatorId | null>
  /** Adds an app that proved itself by the code of `step`. */
  readonly addTotp: (
    personId: PersonId,
    label: string,
    secret: Redacted.Redacted,
    step: number,
  ) => InTransaction<AuthenticatorId>
  /** Replaces the person's recovery codes by ten new ones; only this result ever shows the codes. */
  readonly replaceCodes: (
    personId: PersonId,
    label: string,
  ) => InTransaction<{ readonly id: AuthenticatorId; readonly codes: ReadonlyArray<string> }>
  readonly rename: (id: AuthenticatorId, label: string) => InTransaction<void>
  readonly remove: (id: AuthenticatorId) => InTransaction<void>
}>()("bailiwick/services/people/Authenticators") {
  static readonly layer = Layer.effect(
    Authenticators,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const remove = yield* removing

      const select = (personId: PersonId, lock: boolean) =>
        sql<Authenticator>`
          select a.id::text, a.kind, a.label, a.created_at, a.last_used_at, a.credential_id, a.aaguid, a.transports,
            a.platform, a.backup_eligible, a.backup_state, case when a.kind = 'recovery_codes' then (
              select count(*)::int from recovery_codes c where c.authenticator_id = a.id and c.used_at is null
            ) end as codes_remaining
          from authenticators a
          where a.person_id in (select id from people where id = ${personId} or merged_into = ${personId})
          order by a.id ${sql.literal(lock ? "for update of a" : "")}`

      return Authenticators.of({
        of: (personId) => select(personId, false),
        hold: (personId) => select(personId, true),
        ...(yield* adding),
        replaceCodes: yield* replacingCodes(remove),
        rename: (id, label) => Effect.asVoid(sql`update authenticators set label = ${label} where id = ${id}::uuid`),
        remove: (id) => remove(sql`id = ${id}::uuid`),
      })
    }),
  )
}
