/** The person who takes a credential action, by the sign-in of the request. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Caller } from "../../../schemas/api/ManagementApi.ts"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { InvalidToken } from "../../../schemas/problems/IdentityProblems.ts"
import { type Found, who } from "../CallerAuthentication.ts"

export type Me = Caller["Service"] & { readonly personId: PersonId }

/** Locks the person, so that commands run one at a time, and checks that no earlier one ended this session. */
export const alone = Effect.fnUntraced(function* (sql: PgClient.PgClient, me: Me) {
  yield* sql`select from people where id = ${me.personId} for no key update`
  const [found] = yield* sql<Found>`${who(sql, me)}`
  if (found?.person_id !== me.personId || found.revoked) return yield* new InvalidToken()
})
