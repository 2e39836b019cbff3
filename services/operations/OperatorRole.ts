/** The role that the operator's plane asks for, read again in each request. */
import { Effect } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { roleRequired, Roles } from "../people/Roles.ts"

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
