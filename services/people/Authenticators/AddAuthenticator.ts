/** Adds a registered credential, or an app, to a person's authenticators. */
import { Clock, Effect, type Redacted } from "effect"
import { AuthenticatorId, type PersonId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { Vault } from "../../platform/security/Vault.ts"
import type { Registered } from "./Webauthn.ts"

/** The id and the time of a new authenticator. */
export const fresh = Effect.gen(function* () {
  return { id: AuthenticatorId.make(yield* (yield* Ids).next), now: new Date(yield* Clock.currentTimeMillis) }
})

export const adding = Effect.gen(function* () {
  const { sql } = yield* Database
  const vault = yield* Vault

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

  return { addWebauthn, addTotp }
})
