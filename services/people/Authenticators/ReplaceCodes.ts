/** Replaces the recovery codes of a person. */
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { fresh } from "./AddAuthenticator.ts"
import { hashOf, newCodes } from "./RecoveryCodes.ts"

/** `remove` deletes the authenticators that meet a condition. */
export const replacingCodes = Effect.fnUntraced(function* (
  remove: (which: Statement.Fragment) => Effect.Effect<void, SqlError.SqlError>,
) {
  const { sql } = yield* Database
  const vault = yield* Vault

  return Effect.fnUntraced(function* (personId: PersonId, label: string) {
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
})
