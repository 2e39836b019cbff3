/**
 * The rows of projects: reads, locks and changes them. `revision` is the version that clients see; decisions raise it.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { InstitutionId, ProjectId } from "../../../schemas/BrandedIds.ts"
import type { ConnectorKind, Environment, ProjectState } from "../../../schemas/identity/IdentityDirectory.ts"
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

/** The states in which a launch may be proposed. */
export const launchableStates: ReadonlyArray<string> = ["registered", "launch_proposed", "held"]

/** The states of a project that is not withdrawn. */
export const liveStates: ReadonlyArray<string> = ["registered", "launch_proposed", "launched", "held"]

export interface ProjectChange {
  readonly state: ProjectState
  readonly heldReason?: string | null
  readonly heldFrom?: ProjectRow["held_from"]
  readonly rollout?: ProjectRow["rollout"]
  readonly launchUrl?: string
}

const listed = `id, institution_id, name, website, environment, connector_kind, connector_product, preview_digest,
  redirect_uris, post_logout_redirect_uris, backchannel_logout_uri, requested_scopes, state, held_reason, held_from,
  rollout, client_id, launch_url, revision, created_at`

export const projectRows = (sql: PgClient.PgClient) => {
  const columns = sql.literal(listed)
  const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

  return {
    columns,

    /**
     * Lets commands on one project run one after another to the end of the transaction: each reads roles under shared
     * locks and then changes the project's row, so two at once would deadlock.
     */
    turn: (id: ProjectId) => lockProject(sql, id),

    lock: (id: ProjectId) =>
      Effect.map(
        sql<ProjectRow>`select ${columns} from projects where id = ${id} and not removed for update`,
        ([row]) => row ?? null,
      ),

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
  }
}
