/** Counts the jobs that a person can see. */
import { Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { OperationsSummary } from "../../../schemas/identity/Operation.ts"
import { Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"

export const summarizeJobs = Effect.gen(function* () {
  const { sql } = yield* Database
  const roles = yield* Roles

  return Effect.fn("Operations.summary")(function* (personId: PersonId) {
    const operator = yield* roles.isOperator(personId, "none")
    const [row] = yield* sql<{ pending: number; failed: number; readable: boolean }>`
      select count(*) filter (where state = 'pending')::int as pending,
        count(*) filter (where state <> 'pending')::int as failed,
        coalesce(bool_or(state <> 'pending' and (${operator} or owned)), false) as readable
      from (
        select j.state, exists (
            select from project_owners o
            where o.project_id = j.project_id and o.person_id = ${personId} and o.active and not o.removed
          ) as owned, exists (
            select from projects p join institution_memberships m on m.institution_id = p.institution_id
            where p.id = j.project_id and not p.removed and m.person_id = ${personId} and m.state <> 'ended' and not m.removed
          ) as seen
        from provider_jobs j where j.state <> 'effective'
      ) j where ${operator} or owned or seen`
    const { failed, pending, readable } = row!
    return {
      pending,
      failed,
      failure_diagnostics_available: readable,
      status: failed > 0 ? "failed" : pending > 0 ? "pending" : "effective",
    } satisfies OperationsSummary
  })
})
