/**
 * The rows of projects: reads, locks and changes them. `revision` is the version that clients see; decisions raise it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { ConnectorKind, Environment, ProjectState } from "../../../schemas/identity/IdentityDirectory.ts"
import { WebsiteExists } from "../../../schemas/problems/IdentityProblems.ts"
import { Ids } from "../../platform/Ids.ts"
import { lockProject } from "../../platform/database/AdvisoryLocks.ts"

export interface ProjectRow {
  readonly id: ProjectId
  readonly institution_id: InstitutionId
  readonly name: string
  readonly website: string
  readonly environment: Environment
  readonly connector_kind: ConnectorKind
  readonly connector_product: string | null
  readonly preview_digest: string | null
  readonly redirect_uris: ReadonlyArray<string>
  readonly post_logout_redirect_uris: ReadonlyArray<string>
  readonly backchannel_logout_uri: string | null
  readonly requested_scopes: ReadonlyArray<string>
  readonly state: ProjectState
  readonly held_reason: string | null
  readonly held_from: "registered" | "launch_proposed" | "launched" | null
  readonly rollout: "hold" | "fail" | null
  readonly client_id: string | null
  readonly launch_url: string | null
  readonly revision: number
  readonly created_at: Date
}

export interface ProjectChange {
  readonly state: ProjectState
  readonly heldReason?: string | null
  readonly heldFrom?: ProjectRow["held_from"]
  readonly rollout?: ProjectRow["rollout"]
  readonly launchUrl?: string
}

export type NewProject =
  & Omit<
    ProjectRow,
    "state" | "held_reason" | "held_from" | "rollout" | "client_id" | "launch_url" | "revision" | "created_at"
  >
  & { readonly made_by: PersonId }

const listed = `id, institution_id, name, website, environment, connector_kind, connector_product, preview_digest,
  redirect_uris, post_logout_redirect_uris, backchannel_logout_uri, requested_scopes, state, held_reason, held_from,
  rollout, client_id, launch_url, revision, created_at`

export const projectRows = (sql: PgClient.PgClient) => {
  const columns = sql.literal(listed)
  const first = Effect.map((rows: ReadonlyArray<ProjectRow>) => rows[0] ?? null)
  const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

  return {
    columns,

    /**
     * Lets commands on one project run one after another to the end of the transaction: each reads roles under shared
     * locks and then changes the project's row, so two at once would deadlock.
     */
    turn: (id: ProjectId) => lockProject(sql, id),

    byId: (id: ProjectId) => first(sql<ProjectRow>`select ${columns} from projects where id = ${id} and not removed`),

    lock: (id: ProjectId) =>
      first(sql<ProjectRow>`select ${columns} from projects where id = ${id} and not removed for update`),

    /** Inserts a project; null where the institution has the website in that environment already. */
    insert: Effect.fnUntraced(function* (made: NewProject): Effect.fn.Return<ProjectRow | null, SqlError.SqlError> {
      const at = yield* now
      return yield* first(sql<ProjectRow>`
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
        returning ${columns}`)
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

    /** Changes a locked row. The decided state stays until the feed has sent the same. */
    change: Effect.fnUntraced(function* (
      row: ProjectRow,
      to: ProjectChange,
    ): Effect.fn.Return<ProjectRow, SqlError.SqlError> {
      const [changed] = yield* sql<ProjectRow>`
        update projects set state = ${to.state}, state_decided = true, revision = revision + 1,
          held_reason = ${to.heldReason ?? null}, held_from = ${to.heldFrom ?? null},
          rollout = ${to.rollout === undefined ? row.rollout : to.rollout},
          launch_url = ${to.launchUrl ?? row.launch_url}, updated_at = ${yield* now}
        where id = ${row.id} returning ${columns}`
      return changed!
    }),

    /** Writes what a locked and held project waits for. */
    explain: (id: ProjectId, heldReason: string) =>
      sql`update projects set held_reason = ${heldReason} where id = ${id} and held_reason is distinct from ${heldReason}`,

    /** Raises the version for a decision that does not change the state. */
    touch: Effect.fnUntraced(function* (id: ProjectId): Effect.fn.Return<number, SqlError.SqlError> {
      const [row] = yield* sql<{ revision: number }>`
        update projects set revision = revision + 1, updated_at = ${yield* now} where id = ${id} returning revision`
      return row!.revision
    }),

    /** Makes a person an owner, or ends that; returns the id of the row. */
    own: Effect.fnUntraced(function* (
      projectId: ProjectId,
      personId: PersonId,
      active: boolean,
      madeBy: PersonId,
    ): Effect.fn.Return<string, SqlError.SqlError> {
      const at = yield* now
      const [row] = yield* sql<{ id: string }>`
        insert into project_owners as t (id, project_id, person_id, active, active_decided, since, made_by, created_at,
          updated_at)
        values (${yield* (yield* Ids).next}, ${projectId}, ${personId}, ${active}, true, ${at}, ${madeBy}, ${at}, ${at})
        on conflict (project_id, person_id) where not removed do update
        set active = excluded.active, active_decided = true, since = excluded.since, made_by = excluded.made_by,
          approved_by = '{}', revision = t.revision + 1, created_at = excluded.created_at,
          updated_at = excluded.updated_at
        returning id`
      return row!.id
    }),

    owners: (projectId: ProjectId) =>
      sql<{ person_id: PersonId; active: boolean; since: Date | null; standing: boolean }>`
        select o.person_id, o.active, o.since,
          o.active and p.status = 'active' and not p.removed and p.merged_into is null as standing
        from project_owners o join people p on p.id = o.person_id
        where o.project_id = ${projectId} and not o.removed order by o.person_id collate "C"`,
  }
}
export type ProjectRows = ReturnType<typeof projectRows>
