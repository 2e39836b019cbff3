/** Names of projects, for operators. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { ProjectNames } from "../../schemas/identity/ProjectName.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { auditReader } from "./OperatorRole.ts"

export class OperatorProjectNames extends Context.Service<OperatorProjectNames, {
  /** Each project once, also one that was withdrawn; unknown ids are left out. */
  readonly of: (
    personId: PersonId,
    ids: ReadonlyArray<string>,
  ) => Effect.Effect<ProjectNames, RoleRequired | SqlError.SqlError>
}>()("bailiwick/services/operations/OperatorProjectNames") {
  static readonly layer = Layer.effect(
    OperatorProjectNames,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const operating = yield* auditReader

      const of: OperatorProjectNames["Service"]["of"] = Effect.fn("OperatorProjectNames.of")(
        function* (personId, ids) {
          yield* operating(personId)
          const items = yield* reads<ProjectNames["items"][number]>`
            select id as project_id, name from projects
            where id = any(${[...ids]}::text[]) and name is not null order by id`
          return { items }
        },
      )

      return OperatorProjectNames.of({ of })
    }),
  )
}
