/**
 * Switches a project to another key, in one transaction with the event that says so. The heads are locked first, so the
 * event's position is known before it is appended: from that position on the new key signs, beginning with the event
 * itself. So the first message that consumers get under a key names the two keys after it.
 *
 * The remaining work is read from the projects' rows: after a kill the next call goes on there, and of two calls at
 * once one does it.
 */
import { Clock, Effect } from "effect"
import type { InstitutionId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import { runOnce } from "../../platform/database/UnitOfWork.ts"
import { EventLog, type NewLifecycleEvent } from "../EventLog.ts"
import { waitingFor } from "./UnacknowledgedConsumers.ts"

/** Heads that one transaction locks at most. */
const chunk = 100

interface Head {
  readonly project_id: ProjectId
  readonly epoch: number
  readonly position: bigint
}

interface Standing {
  readonly project_id: ProjectId
  readonly kid: string
  readonly institution_id: InstitutionId | null
  readonly removed: boolean
}

interface Untold extends Standing {
  readonly news_id: bigint
  readonly compromised: string | null
  readonly not_before: Date | null
  /** The project's own key was stolen. */
  readonly lost: boolean
  /** A stolen key signed some of the project's history. */
  readonly touched: boolean
  /** The key to switch to where the project's own key was stolen. */
  readonly refuge: string
}

/** A transition that has begun. */
export interface Transition {
  readonly id: bigint
  readonly successor: string
  readonly deadline_at: Date
}

export const moving = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const eventLog = yield* EventLog

  /** Locks the heads of projects; returns the position of each project's next event. */
  const nextPositions = Effect.fnUntraced(function* (projectIds: ReadonlyArray<ProjectId>) {
    const ids = [...projectIds].sort()
    yield* sql`insert into lifecycle_heads (project_id) select unnest(${ids}::text[]) on conflict do nothing`
    const heads = yield* sql<Head>`
      select project_id, epoch, position from lifecycle_heads
      where project_id = any(${ids}::text[]) order by project_id for update`
    return new Map(heads.map((head) => [head.project_id, { ...head, position: head.position + 1n }]))
  })

  /** The two keys after each key. */
  const successors = Effect.map(
    sql<{ kid: string; next: ReadonlyArray<string> }>`
      select k.kid, array(
        select n.kid from signing_keys n where n.succession > k.succession and n.state in ('announced', 'published')
        order by n.succession limit 2) as next
      from signing_keys k`,
    (rows) => new Map(rows.map(({ kid, next }) => [kid, next])),
  )

  const eventOf = (
    { institution_id, project_id, removed }: Standing,
    payload: NonNullable<NewLifecycleEvent["payload"]>,
  ): ReadonlyArray<NewLifecycleEvent> =>
    institution_id === null || removed ? [] : [{
      kind: "key-transition",
      projectId: project_id,
      institutionId: institution_id,
      payload,
      initiatedBy: "admin",
    }]

  /** Lets these keys sign from the projects' next events on. */
  const signFrom = Effect.fnUntraced(function* (
    positions: ReadonlyMap<string, Head>,
    to: ReadonlyArray<{ readonly project_id: ProjectId; readonly kid: string; readonly anew: boolean }>,
  ) {
    if (to.length === 0) return
    const since = new Date(yield* Clock.currentTimeMillis)
    const rows = to.map((row) => {
      const { epoch, position } = positions.get(row.project_id)!
      return { ...row, epoch, position: String(position) }
    })
    yield* sql`
      with moved as (
        select * from json_to_recordset(${JSON.stringify(rows)}::json)
          r(project_id text, kid text, anew boolean, epoch integer, position bigint)
      ), placed as (
        insert into lifecycle_key_places (project_id, epoch, position, kid, anew, since)
        select project_id, epoch, position, kid, anew, ${since} from moved
        -- A removed project appends no event, so its next position may have a key already.
        on conflict (project_id, epoch, position) do update
        set kid = excluded.kid, anew = excluded.anew or lifecycle_key_places.anew, since = excluded.since
      )
      update lifecycle_project_keys p set kid = m.kid from moved m where p.project_id = m.project_id`
  })

  /** Raises the minimum cursors of consumers to these positions: each has to take a snapshot first. */
  const raiseMinimumCursors = (
    positions: ReadonlyMap<string, Head>,
    consumers: ReadonlyArray<{ readonly project_id: ProjectId; readonly consumer: string | null }>,
  ) => {
    const rows = consumers.map(({ consumer, project_id }) => {
      const { epoch, position } = positions.get(project_id)!
      return { project_id, consumer, epoch, position: String(position) }
    })
    return rows.length === 0 ? Effect.void : sql`
      update lifecycle_consumers c set floor_epoch = r.epoch, floor_position = r.position
      from json_to_recordset(${JSON.stringify(rows)}::json)
        r(project_id text, consumer text, epoch integer, position bigint)
      where c.project_id = r.project_id and c.consumer = coalesce(r.consumer, c.consumer)`
  }

  /**
   * Deletes messages that a stolen key signed and a stream still has to deliver, so that the next key signs them again:
   * receivers without a cursor have no snapshot to go on from.
   */
  const deleteStolenMessages = Effect.fnUntraced(function* (stolen: string, projectIds: ReadonlyArray<ProjectId>) {
    // A process that is serving a stream may have read deleted messages: it must find that the stream changed.
    yield* sql`
      update lifecycle_streams set updated_at = ${new Date(yield* Clock.currentTimeMillis)}
      where project_id = any(${[...projectIds]}::text[]) and status <> 'disabled'`
    yield* sql`
      with slowest as (
        select distinct on (project_id) project_id, epoch, position from lifecycle_streams
        where project_id = any(${[...projectIds]}::text[]) and status <> 'disabled'
        order by project_id, epoch, position
      ), taken as (
        delete from lifecycle_messages m using slowest s
        where m.project_id = s.project_id and (m.epoch, m.position) > (s.epoch, s.position) and m.kid = ${stolen}
        returning m.project_id, m.epoch, m.position
      ), firsts as (
        select distinct on (project_id) project_id, epoch, position from taken order by project_id, epoch, position
      )
      update lifecycle_signed g set epoch = f.epoch, position = f.position - 1 from firsts f
      where g.project_id = f.project_id and (g.epoch, g.position) >= (f.epoch, f.position)`
  })

  /** The next announcement for each of these projects; where the project's own key was stolen, that announcement. */
  const untold = (projectIds: ReadonlyArray<ProjectId>) =>
    sql<Untold>`
      select p.project_id, p.kid, pr.institution_id, coalesce(pr.removed, true) as removed, n.id as news_id,
        n.compromised, n.not_before, k.state = 'compromised' as lost,
        exists (select from lifecycle_key_places a where a.project_id = p.project_id and a.kid = n.compromised) as touched,
        coalesce((select successor from lifecycle_key_news where ended_at is null),
          (select kid from signing_keys where state = 'active')) as refuge
      from lifecycle_project_keys p
      join signing_keys k on k.kid = p.kid
      left join projects pr on pr.id = p.project_id
      join lateral (
        select * from lifecycle_key_news n
        where n.id > p.news_id and (k.state <> 'compromised' or n.compromised = p.kid) order by n.id limit 1
      ) n on true
      where p.project_id = any(${[...projectIds]}::text[])`

  const announceTo = Effect.fnUntraced(function* (projectIds: ReadonlyArray<ProjectId>) {
    const positions = yield* nextPositions(projectIds)
    const rows = yield* untold(projectIds)
    const next = yield* successors
    const touched = rows.filter((row) => row.touched)
    yield* signFrom(
      positions,
      touched.map(({ kid, lost, project_id, refuge }) => ({ project_id, kid: lost ? refuge : kid, anew: true })),
    )
    for (const [stolen, own] of Map.groupBy(touched, ({ compromised }) => compromised!)) {
      yield* deleteStolenMessages(stolen, own.map(({ project_id }) => project_id))
    }
    // Streams are locked before consumers, in the order in which the settlement of deliveries locks them.
    yield* raiseMinimumCursors(positions, touched.map(({ project_id }) => ({ project_id, consumer: null })))
    const told = rows.map(({ news_id, project_id }) => {
      const { epoch, position } = positions.get(project_id)!
      return { project_id, news_id: String(news_id), epoch, position: String(position) }
    })
    yield* sql`
      update lifecycle_project_keys p
      set news_id = r.news_id, told_epoch = r.epoch, told_position = r.position
      from json_to_recordset(${JSON.stringify(told)}::json)
        r(project_id text, news_id bigint, epoch integer, position bigint)
      where p.project_id = r.project_id`
    yield* eventLog.append(...rows.flatMap((row) =>
      eventOf(row, {
        next: next.get(row.lost ? row.refuge : row.kid)!,
        ...(row.compromised === null ? {} : { compromised: row.compromised }),
        ...(row.not_before === null ? {} : { not_before: Math.floor(row.not_before.getTime() / 1000) }),
      })
    ))
    return rows.length
  })

  /** Appends the announcements that some projects lack; returns for how many. */
  const tell = Effect.gen(function* () {
    const behind = yield* sql<{ project_id: ProjectId }>`
      select project_id from lifecycle_project_keys
      where news_id < (select max(id) from lifecycle_key_news) order by project_id limit ${chunk}`
    if (behind.length === 0) return 0
    return yield* runOnce(announceTo(behind.map(({ project_id }) => project_id)))
  }).pipe(Effect.provideService(Database, database), Effect.withSpan("KeyRotation.tell"))

  const switchProjects = Effect.fnUntraced(function* (projectIds: ReadonlyArray<ProjectId>, to: Transition, now: Date) {
    const positions = yield* nextPositions(projectIds)
    const rows = yield* sql<Standing & { readonly waits: ReadonlyArray<string> }>`
      select p.project_id, p.kid, pr.institution_id, coalesce(pr.removed, true) as removed,
        array(${waitingFor(sql, now)}) as waits
      from lifecycle_project_keys p left join projects pr on pr.id = p.project_id
      where p.project_id = any(${[...projectIds]}::text[]) and p.kid <> ${to.successor}
        and exists (select from signing_keys k where k.kid = ${to.successor} and k.state in ('published', 'active'))`
    const going = rows.filter(({ waits }) => waits.length === 0 || now >= to.deadline_at)
    const next = (yield* successors).get(to.successor)!
    yield* signFrom(positions, going.map(({ project_id }) => ({ project_id, kid: to.successor, anew: false })))
    yield* raiseMinimumCursors(
      positions,
      going.flatMap(({ project_id, waits }) => waits.map((consumer) => ({ project_id, consumer }))),
    )
    yield* eventLog.append(...going.flatMap((row) => eventOf(row, { next })))
    return going.length
  })

  /** Switches some projects whose consumers have acknowledged or whose deadline has passed; returns how many. */
  const switchSome = Effect.fn("KeyRotation.switch")(function* (to: Transition) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const ready = yield* sql<{ project_id: ProjectId }>`
      select p.project_id from lifecycle_project_keys p
      join signing_keys k on k.kid = p.kid and k.state <> 'compromised'
      left join projects pr on pr.id = p.project_id
      where p.kid <> ${to.successor} and p.news_id >= ${to.id}
        and (${now >= to.deadline_at} or not exists (${waitingFor(sql, now)}))
      order by p.project_id limit ${chunk}`
    if (ready.length === 0) return 0
    return yield* Effect.provideService(
      runOnce(switchProjects(ready.map(({ project_id }) => project_id), to, now)),
      Database,
      database,
    )
  })

  return { tell, switchSome }
})
