/**
 * The authenticators of a person, in addition to the issuer's own: passkeys, security keys, apps, recovery codes. The
 * first three are second factors (aal2), and the last of a person's second factors cannot be removed: to make this
 * safe, every change of an authenticator locks all rows of the person.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, type Redacted } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { AuthenticatorId, type PersonId } from "../../schemas/BrandedIds.ts"
import { decisionMessage } from "../../schemas/bus/Decisions.ts"
import type { AuthenticatorKind, AuthenticatorView, CredentialType } from "../../schemas/identity/CredentialAction.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { Vault } from "../platform/security/Vault.ts"
import { hashOf, newCodes } from "./Authenticators/RecoveryCodes.ts"
import type { Registered } from "./Authenticators/Webauthn.ts"

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
      const vault = yield* Vault
      const outbox = yield* Outbox

      /** Deletes authenticators and publishes on DIRECTORY that they are gone. */
      const remove = Effect.fnUntraced(function* (which: Statement.Fragment) {
        const removed_at = new Date(yield* Clock.currentTimeMillis).toISOString()
        const gone = yield* sql<{ id: string; person_id: PersonId }>`
          delete from authenticators where ${which} returning id::text as id, person_id`
        yield* outbox.add(...gone.map((one) => decisionMessage({ kind: "authenticator", ...one, removed_at })))
      })

      const select = (personId: PersonId, lock: boolean) =>
        sql<Authenticator>`
          select a.id::text, a.kind, a.label, a.created_at, a.last_used_at, a.credential_id, a.aaguid, a.transports,
            a.platform, a.backup_eligible, a.backup_state, case when a.kind = 'recovery_codes' then (
              select count(*)::int from recovery_codes c where c.authenticator_id = a.id and c.used_at is null
            ) end as codes_remaining
          from authenticators a
          where a.person_id in (select id from people where id = ${personId} or merged_into = ${personId})
          order by a.id ${sql.literal(lock ? "for update of a" : "")}`

      const fresh = Effect.gen(function* () {
        return { id: AuthenticatorId.make(yield* (yield* Ids).next), now: new Date(yield* Clock.currentTimeMillis) }
      })

      const addWebauthn = Effect.fnUntraced(function* (personId: PersonId, label: string, made: Registered) {
        const { id, now } = yield* fresh
        const added = yield* sql`
          insert into authenticators (id, person_id, kind, label, created_at, credential_id, public_key, sign_count,
            aaguid, transports, platform, backup_eligible, backup_state)
          values (${id}::uuid, ${personId}, ${made.kind}, ${label}, ${now}, ${made.credentialId}, ${made.publicKey},
            ${made.signCount}::bigint, ${made.aaguid}, array(select jsonb_array_elements_text(${
          sql.json(made.transports)
        })), ${made.platform}, ${made.backupEligible}, ${made.backupState})
          on conflict (credential_id) do nothing returning 1`
        return added.length === 0 ? null : id
      })

      const addTotp = Effect.fnUntraced(
        function* (personId: PersonId, label: string, secret: Redacted.Redacted, step: number) {
          const { id, now } = yield* fresh
          const sealed = vault.seal(secret, { table: "authenticators", column: "secret", row: id })
          yield* sql`
            insert into authenticators (id, person_id, kind, label, created_at, last_used_at, kid, secret, last_step)
            values (${id}::uuid, ${personId}, 'totp', ${label}, ${now}, ${now}, ${sealed.kid}, ${sealed.bytes},
              ${step}::bigint)`
          return id
        },
      )

      const replaceCodes = Effect.fnUntraced(function* (personId: PersonId, label: string) {
        const { id, now } = yield* fresh
        yield* remove(
          sql`kind = 'recovery_codes'
            and person_id in (select id from people where id = ${personId} or merged_into = ${personId})`,
        )
        yield* sql`
          insert into authenticators (id, person_id, kind, label, created_at)
          values (${id}::uuid, ${personId}, 'recovery_codes', ${label}, ${now})`
        const codes = newCodes()
        const rows = codes.map((code) => {
          const { hash, kid } = hashOf(vault, id, code)
          return { kid, hash: Buffer.from(hash).toString("hex") }
        })
        yield* sql`
          insert into recovery_codes (authenticator_id, kid, hash)
          select ${id}::uuid, kid, decode(hash, 'hex')
          from jsonb_to_recordset(${sql.json(rows)}) as code (kid text, hash text)`
        return { id, codes }
      })

      return Authenticators.of({
        of: (personId) => select(personId, false),
        hold: (personId) => select(personId, true),
        addWebauthn,
        addTotp,
        replaceCodes,
        rename: (id, label) => Effect.asVoid(sql`update authenticators set label = ${label} where id = ${id}::uuid`),
        remove: (id) => remove(sql`id = ${id}::uuid`),
      })
    }),
  )
}
