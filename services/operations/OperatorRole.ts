/** The roles that the operator's plane asks for, read again in each request. */
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { isAuditor } from "../people/InstitutionReader.ts"
import { roleRequired, Roles } from "../people/Roles.ts"
import { Database } from "../platform/database/Database.ts"

/**
 * Fails with RoleRequired unless the person is an active operator. In a transaction the row stays locked to its end, so
 * that a role that is revoked at the same moment decides nothing any more; reads take no lock.
 */
export const mustOperate = Effect.map(
  Roles,
  (roles) =>
    Effect.fnUntraced(function* (personId: PersonId, lock: "share" | "none" = "none") {
      if (!(yield* roles.isOperator(personId, lock))) return yield* roleRequired("an active operator")
    }),
)

/** The role in which a person reads the audit; RoleRequired for a person who is neither an operator nor an auditor. */
export const auditReader = Effect.gen(function* () {
  const { reads } = yield* Database
  const roles = yield* Roles
  return Effect.fnUntraced(function* (personId: PersonId) {
    if (yield* roles.isOperator(personId, "none")) return "operator" as const
    const [row] = yield* reads<{ auditor: boolean }>`select ${isAuditor(reads, personId)} as auditor`
    return row!.auditor ? "auditor" as const : yield* roleRequired("an active operator or auditor")
  })
})
