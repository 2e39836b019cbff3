/** Projects whose rollout is held or has failed. Checks no role: the caller has checked that an operator asks. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { HeldRollouts } from "../../schemas/identity/RolloutView.ts"
import type { AskedPage } from "./OperatorAudit.ts"

/** A page of them, ascending by id. */
export const heldRollouts = Effect.fn("HeldRollouts.list")(
  function* (sql: PgClient.PgClient, { afterId, limit }: AskedPage) {
    const found = yield* sql<HeldRollouts["items"][number]>`
      select p.id as project_id, p.name, p.website, p.environment, p.institution_id, i.name as institution_name,
        p.rollout, p.state, p.revision::int as version
      from projects p left join institutions i on i.id = p.institution_id
      where p.rollout is not null and not p.removed and ${afterId === undefined ? sql`true` : sql`p.id > ${afterId}`}
      order by p.id limit ${limit + 1}`
    const items = found.slice(0, limit)
    return { items, next_after_id: found.length > limit ? items.at(-1)!.project_id : null } satisfies HeldRollouts
  },
)
