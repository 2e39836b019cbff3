/** Names of mail accounts, for operators. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { AccountNames } from "../../schemas/identity/AccountName.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { mustOperate } from "./OperatorRole.ts"

export class OperatorAccountNames extends Context.Service<OperatorAccountNames, {
  /** Each account once, also one that is disabled; unknown ids are left out. */
  readonly of: (
    personId: PersonId,
    ids: ReadonlyArray<string>,
  ) => Effect.Effect<AccountNames, RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/operations/OperatorAccountNames") {
  static readonly layer = Layer.effect(
    OperatorAccountNames,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const operating = yield* mustOperate

      const of: OperatorAccountNames["Service"]["of"] = Effect.fn("OperatorAccountNames.of")(
        function* (personId, ids) {
          yield* operating(personId)
          const items = yield* reads<AccountNames["items"][number]>`
            select id::text as account_id, name from accounts where id = any(${ids.filter(isUuid)}::uuid[]) order by id`
          return { items }
        },
      )

      return OperatorAccountNames.of({ of })
    }),
  )
}
