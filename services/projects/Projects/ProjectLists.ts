/**
 * Lists the launch proposals, the owners and the events of a project, a page at a time, for those who may read them.
 * Without locks: a role that ends at that moment may still read, and decides nothing.
 */
import { Effect } from "effect"
import type { PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { ProjectEvent } from "../../../schemas/identity/ProjectEvent.ts"
import type { ListedOwners } from "../../../schemas/identity/Project.ts"
import { needs, roleRequired, Roles } from "../../people/Roles.ts"
import { Database } from "../../platform/database/Database.ts"
import { newestReview, requestRows } from "../../requests/RequestRows.ts"
import { ownersOf, type ReadRequest, shownLaunchOf } from "./ProjectViews.ts"

/** At most `limit` items after the item `afterId`; null: from the beginning. */
export interface ProjectPage {
  readonly personId: PersonId
  readonly projectId: ProjectId
  readonly limit: number
  readonly afterId: string | null
}

interface EventRow extends Pick<ProjectEvent, "event_id" | "epoch" | "subject" | "details"> {
  readonly kind: LifecycleEventKind
  readonly position: bigint
  readonly created_at: Date
  readonly signed_at: Date | null
}

const eventOf = ({ created_at, position, signed_at, ...row }: EventRow): ProjectEvent => ({
  ...row,
  position: Number(position),
  event_type: lifecycleEventKinds[row.kind].uri,
  recorded_at: created_at.toISOString(),
  signed_at: signed_at?.toISOString() ?? null,
})

export const projectLists = Effect.gen(function* () {
  const { reads } = yield* Database
  const roles = yield* Roles
  const requests = requestRows(reads)

  const mayRead = Effect.fnUntraced(function* ({ personId, projectId }: ProjectPage) {
    const { institution, operator, owner } = yield* roles.toProject(personId, projectId, "none")
    if (operator || owner) return
    if (institution === null) return yield* roleRequired("an owner of the project")
    yield* needs(institution, "sponsor", "administrator")
  })

  const launches = Effect.fn("Projects.launches")(function* (page: ProjectPage) {
    yield* mayRead(page)
    const { afterId, limit, projectId } = page
    const rows = yield* reads<{ readonly request: ReadRequest }>`
      select to_jsonb(t) as request from (
        select ${requests.columns}, v.review_id, v.required_roles from requests r ${newestReview(reads)}
        where r.project_id = ${projectId} and r.kind = 'launch'
          and (${afterId}::uuid is null or r.id < ${afterId}::uuid)
        order by r.id desc limit ${limit}
      ) t order by t.id desc`
    return { items: rows.map(({ request }) => shownLaunchOf(request)) }
  })

  const owners = Effect.fn("Projects.owners")(function* (page: ProjectPage) {
    yield* mayRead(page)
    const { afterId, limit, projectId } = page
    const rows = yield* reads<ListedOwners["items"][number]>`
      select o.person_id, o.active, to_jsonb(o.since) #>> '{}' as since
      from project_owners o join people p on p.id = o.person_id
      where o.project_id = ${projectId} and not o.removed and o.person_id > ${afterId ?? ""}
      order by o.person_id limit ${limit}`
    return { items: ownersOf(rows) }
  })

  const events = Effect.fn("Projects.events")(function* ({ afterId, limit, personId, projectId }: ProjectPage) {
    const { institution, operator, owner } = yield* roles.toProject(personId, projectId, "none")
    if (!owner && !(operator && institution?.member === true)) {
      return yield* roleRequired(
        "an active owner of the project, or an operator with an effective membership in its institution",
      )
    }
    const rows = yield* reads<EventRow>`
      select e.id::text as event_id, e.epoch, e.position, e.kind, e.sub_id as subject, e.payload as details, e.created_at,
        m.signed_at
      from lifecycle_events e
      left join lifecycle_messages m on m.event_id = e.id
      where e.project_id = ${projectId} and (${afterId}::uuid is null or (e.epoch, e.position) < (
        select epoch, position from lifecycle_events where id = ${afterId}::uuid and project_id = ${projectId}))
      order by e.epoch desc, e.position desc limit ${limit}`
    return { items: rows.map(eventOf) }
  })

  return { launches, owners, events }
})
