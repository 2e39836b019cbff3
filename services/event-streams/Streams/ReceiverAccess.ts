/**
 * Reads streams for their receivers: each receiver sees its own, by issuer and client, and only while a grant for the
 * project allows it, which is checked at each call. Another receiver's stream is NotFound; a receiver that may manage
 * no stream at all gets CapabilityRequired first.
 */
import { Clock, Effect } from "effect"
import type { Capability } from "../../../schemas/identity/ServiceGrant.ts"
import { NotFound } from "../../../schemas/problems/HttpProblems.ts"
import { CapabilityRequired } from "../../../schemas/problems/StreamProblems.ts"
import { isUuid } from "../../../schemas/Wire.ts"
import { Database } from "../../platform/database/Database.ts"
import { type Asking, grants, type Receiver } from "../../lifecycle/GrantCheck.ts"
import { streamColumns, type StreamRow } from "./Rows.ts"

const scope = "stream.manage"

export const visibleStreams = Effect.gen(function* () {
  const { sql } = yield* Database
  const { projectsOf, stands } = yield* grants
  const columns = streamColumns(sql)

  const refused = Effect.fail(new CapabilityRequired({ scope }))

  /** SQL of whether a grant of `t`'s receiver for `t`'s project is effective for this capability. */
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

  /**
   * The receiver's streams that it may manage, oldest first; fails with CapabilityRequired where it may manage none.
   */
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
   * Locks the receiver's grants for the project to the end of the transaction, so that none is revoked meanwhile.
   * Changes of streams of one receiver and project wait for each other here. Grants are locked before all rows of a
   * stream.
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

  /** `one`, with the stream and the receiver's grants locked to the end of the transaction. */
  const locked = Effect.fnUntraced(function* (receiver: Receiver, streamId: string) {
    const { project_id: projectId } = yield* one(receiver, streamId)
    yield* lockGrants({ ...receiver, projectId })
    const [row] = yield* sql<StreamRow>`
      select ${columns} from lifecycle_streams t where t.id = ${streamId}::uuid for update of t`
    return row ?? (yield* new NotFound())
  })

  return { all, lockGrants, locked, one, projectsOf: (receiver: Receiver) => projectsOf(receiver, scope) }
})
