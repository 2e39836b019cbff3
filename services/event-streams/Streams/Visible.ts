/**
 * Streams as their receivers see them: each its own, by issuer and client, and only while a grant for the project says
 * so. Asked at each call. Another's stream is not there; whoever may manage no stream at all is told so first.
 */
import { Clock, Effect } from "effect"
import type { Capability } from "../../../schemas/identity/ServiceGrants.ts"
import { NotFound } from "../../../schemas/problems/Floor.ts"
import { CapabilityRequired } from "../../../schemas/problems/Streams.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Asking, grants, type Receiver } from "../../lifecycle/Granted.ts"
import { streamColumns, type StreamRow } from "./Rows.ts"

const scope = "stream.manage"

export const visibleStreams = Effect.gen(function* () {
  const { sql } = yield* Database
  const { projectsOf, stands } = yield* grants
  const columns = streamColumns(sql)

  const refused = Effect.fail(new CapabilityRequired({ scope }))

  /** Whether the grant of `t`'s receiver for `t`'s project says this. */
  const granted = (capability: Capability, now: Date) =>
    sql`exists (
      select from service_grants g join projects p on p.id = g.project_id and not p.removed
      where g.project_id = t.project_id and g.service_issuer = t.service_issuer and g.service_id = t.service_id
        and ${stands(capability, now)})`

  const missing = Effect.fnUntraced(function* (receiver: Receiver) {
    const projects = yield* projectsOf(receiver, scope)
    return yield* projects.length === 0 ? refused : Effect.fail(new NotFound())
  })

  /** The receiver's stream, where it may manage it and all of `also`. Fails with NotFound and CapabilityRequired. */
  const one = Effect.fnUntraced(function* (receiver: Receiver, streamId: string, also: ReadonlyArray<Capability> = []) {
    if (!isUuid(streamId)) return yield* missing(receiver)
    const now = new Date(yield* Clock.currentTimeMillis)
    const asked = [scope, ...also] as const
    const [row] = yield* sql<StreamRow & { readonly lacks: string | null }>`
      select ${columns}, case ${
      sql.join(" ", false)(asked.map((name) => sql`when not ${granted(name, now)} then ${name}`))
    } end as lacks
      from lifecycle_streams t
      where t.id = ${streamId}::uuid and t.service_issuer = ${receiver.issuer} and t.service_id = ${receiver.clientId}`
    if (row === undefined) return yield* missing(receiver)
    const { lacks, ...stream } = row
    if (lacks !== null) return yield* new CapabilityRequired({ scope: lacks })
    return stream
  })

  /** The receiver's streams that it may manage, oldest first; fails with CapabilityRequired where it may manage none. */
  const all = Effect.fnUntraced(function* (receiver: Receiver) {
    const projects = yield* projectsOf(receiver, scope)
    if (projects.length === 0) return yield* refused
    return yield* sql<StreamRow>`
      select ${columns} from lifecycle_streams t
      where t.service_issuer = ${receiver.issuer} and t.service_id = ${receiver.clientId}
        and t.project_id = any(${projects}::text[])
      order by t.id`
  })

  /**
   * For the rest of the transaction the grants are as they are: nothing is decided by one that is revoked meanwhile. Those
   * of one receiver and project wait for each other here. Grants come before everything else that a stream locks.
   */
  const lockGrants = Effect.fnUntraced(function* ({ clientId, issuer, projectId }: Asking) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{ stands: boolean | null }>`
      select bool_or(own.stands) as stands from (
        select ${stands(scope, now)} as stands
        from service_grants g join projects p on p.id = g.project_id and not p.removed
        where g.project_id = ${projectId} and g.service_issuer = ${issuer} and g.service_id = ${clientId}
        order by g.id for no key update of g
      ) own`
    if (row?.stands !== true) return yield* refused
  })

  /** `one`, and nobody changes it, or the grants that it stands on, until the transaction ends. */
  const locked = Effect.fnUntraced(function* (receiver: Receiver, streamId: string) {
    const { project_id: projectId } = yield* one(receiver, streamId)
    yield* lockGrants({ ...receiver, projectId })
    const [row] = yield* sql<StreamRow>`
      select ${columns} from lifecycle_streams t where t.id = ${streamId}::uuid for update of t`
    return row ?? (yield* new NotFound())
  })

  return { all, lockGrants, locked, one, projectsOf: (receiver: Receiver) => projectsOf(receiver, scope) }
})
