/** Inserts the rows of new projects: an institution has a website once in each environment. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { WebsiteExists } from "../../../schemas/problems/IdentityProblems.ts"
import { type ProjectRow, projectRows } from "./Rows.ts"

export type NewProject =
  & Omit<
    ProjectRow,
    "state" | "held_reason" | "held_from" | "rollout" | "client_id" | "launch_url" | "revision" | "created_at"
  >
  & { readonly made_by: PersonId }

export const newProjects = (sql: PgClient.PgClient) => {
  const { columns } = projectRows(sql)

  return {
    /** Inserts a project; null where the institution has the website in that environment already. */
    insert: Effect.fnUntraced(function* (made: NewProject): Effect.fn.Return<ProjectRow | null, SqlError.SqlError> {
      const at = new Date(yield* Clock.currentTimeMillis)
      const [project] = yield* sql<ProjectRow>`
        insert into projects (id, institution_id, name, website, environment, connector_kind, connector_product,
          preview_digest, redirect_uris, post_logout_redirect_uris, backchannel_logout_uri, requested_scopes, made_by,
          state, state_decided, created_at, updated_at)
        select r.*, 'registered', true, ${at}::timestamptz, ${at}::timestamptz from jsonb_to_record(${
        sql.json(made)
      }) r(
          id text, institution_id text, name text, website text, environment text, connector_kind text,
          connector_product text, preview_digest text, redirect_uris text[], post_logout_redirect_uris text[],
          backchannel_logout_uri text, requested_scopes text[], made_by text)
        on conflict (institution_id, md5(website), environment) where state <> 'withdrawn' and not removed do nothing
        returning ${columns}`
      return project ?? null
    }),

    /** The refusal that names the project which has the website already. */
    twin: Effect.fnUntraced(function* (
      institutionId: InstitutionId,
      { environment, website }: Pick<ProjectRow, "environment" | "website">,
    ): Effect.fn.Return<WebsiteExists, SqlError.SqlError> {
      const [row] = yield* sql<Pick<ProjectRow, "id" | "state">>`
        select id, state from projects
        where institution_id = ${institutionId} and md5(website) = md5(${website}) and environment = ${environment}
          and state <> 'withdrawn' and not removed`
      // The other project may have been withdrawn since.
      if (row === undefined) return new WebsiteExists()
      return new WebsiteExists({
        detail: `Project ${row.id}, which is ${row.state}, has this website in ${environment}: withdraw it first, or ` +
          "register another website or environment.",
      })
    }),
  }
}
