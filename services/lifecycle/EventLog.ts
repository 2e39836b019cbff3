/**
 * The log of lifecycle events. The transition that causes an event appends it, in its own transaction. The event gets
 * its position in the project's history at the very end of that transaction, under the lock of the project's head,
 * which is held to the commit: positions have no gaps and follow the order of commits (docs/lock-order.md).
 *
 * Each event is chained to the one before: `digest` = SHA-256 over the ASCII lines prev_digest, epoch, position,
 * body_digest, where body_digest is that of the event's `{sub_id, events}` without its `lifecycle` member, in canonical
 * JSON. With these a consumer can check that no event was left out, changed or moved.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { InstitutionId, PersonId, ProjectId } from "../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../schemas/identity/LifecycleEventKinds.ts"
import { digestOf, genesis } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { fenceLast, isRepeated } from "../platform/database/FencedCommand.ts"
import {
  afterCommit,
  either,
  type Fence,
  type Kind,
  last,
  type Part,
  type UnitOfWork,
  write,
  writeParts,
} from "../platform/database/UnitOfWork.ts"
import { idIn } from "../platform/database/IdIn.ts"
import { Ids } from "../platform/Ids.ts"
import { traceparentNow } from "../platform/observability/Traces.ts"
import { isSame, settleEpoch } from "./Epochs.ts"
import { accountKey, changesOf } from "./StateProjection.ts"

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** An event to append: a change that a project's products must know. */
export interface NewLifecycleEvent {
  readonly kind: LifecycleEventKind
  readonly projectId: ProjectId
  readonly institutionId: InstitutionId
  /** The person that the event is about, if any: canonical id and first identity. */
  readonly person?: { readonly id: PersonId; readonly issuer: string; readonly subject: string }
  /** The one session that the event is about, by the issuer's name of it (`sid`). */
  readonly session?: string
  /** Members of the event beside the common ones: codes and ids, never text that a person wrote. */
  readonly payload?: { readonly [key: string]: Json }
  /** The event's `initiating_entity`. */
  readonly initiatedBy: "admin" | "user" | "policy" | "system"
}

interface Placed {
  readonly id: string
  readonly projectId: ProjectId
  readonly kind: LifecycleEventKind
  readonly txn: string
  readonly personId: PersonId | null
  readonly subId: Json
  readonly payload: Json
  readonly bodyDigest: string
  readonly at: Date
  /** The trace of the request that decided; not a part of the event. */
  readonly traceparent: string | null
}

const opaque = (id: string) => ({ format: "opaque", id })

const subIdOf = ({ institutionId, kind, person, projectId, session }: NewLifecycleEvent): Json => {
  const user = person === undefined ? null : { format: "iss_sub", iss: person.issuer, sub: person.subject }
  if (user !== null && session !== undefined) return { format: "complex", user, session: opaque(session) }
  if (lifecycleEventKinds[kind].about === "person") return user ?? opaque(projectId)
  return {
    format: "complex",
    ...(user === null ? {} : { user }),
    // Claims belong to a person in an institution, not to one project.
    ...(kind === "token-claims-change" ? {} : { application: opaque(projectId) }),
    tenant: opaque(institutionId),
  }
}

/**
 * The topic of the wake-up signals that a project's events send when they committed, and again when they were signed.
 */
export const lifecycleTopic = "lifecycle"

/** The interval, in milliseconds, at which a waiter looks by itself: the delay that a lost wake-up signal costs. */
export const lifecycleNetMillis = 5_000

export class EventLog extends Context.Service<EventLog, {
  /**
   * Appends events in the current unit of work; returns their ids in order. The events of one call have one cause
   * (`txn`).
   */
  readonly append: (
    ...events: ReadonlyArray<NewLifecycleEvent>
  ) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError, UnitOfWork>
  /** Whether the state of a project says that a person's account is disabled. */
  readonly toldDisabled: (
    projectId: ProjectId,
    person: { readonly issuer: string; readonly subject: string },
  ) => Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const { sql } = yield* Database
      const wakeUps = yield* WakeUps
      const same = isSame(sql)

      // All events of a transaction are appended by one statement, which counts positions up from each head.
      const placing = (events: ReadonlyArray<Placed>, heads: Statement.Fragment) => {
        const rows = events.map((event, i) => ({
          nth: i,
          id: event.id,
          project_id: event.projectId,
          kind: event.kind,
          txn: event.txn,
          person_id: event.personId,
          sub_id: event.subId,
          payload: event.payload,
          body_digest: event.bodyDigest,
          created_at: event.at.toISOString(),
          traceparent: event.traceparent,
          state: changesOf(event),
        }))
        const parts = {
          fact_new: sql`
            select r.*, row_number() over (partition by project_id order by nth) as step
            from jsonb_to_recordset(${sql.json(rows)}) r(
              nth integer, id uuid, project_id text, kind text, txn uuid, person_id text, sub_id jsonb, payload jsonb,
              body_digest text, created_at timestamptz, traceparent text, state jsonb)`,
          fact_chain: sql`
            select h.project_id, i.epoch, case when h.epoch = i.epoch then h.position else 0 end as position,
              case when h.epoch = i.epoch then h.digest else ${genesis} end as digest, null::text as prev_digest,
              0::bigint as step
            from ${heads} h cross join installation i
            union all
            select c.project_id, c.epoch, c.position + 1,
              'sha256:' || encode(sha256(convert_to(
                c.digest || E'\\n' || c.epoch || E'\\n' || (c.position + 1) || E'\\n' || t.body_digest, 'UTF8')), 'hex'),
              c.digest, t.step
            from fact_chain c join fact_new t on t.project_id = c.project_id and t.step = c.step + 1`,
          fact_added: sql`
            insert into lifecycle_events (id, project_id, epoch, position, digest, prev_digest, body_digest, kind, txn,
              person_id, sub_id, payload, created_at, traceparent)
            select t.id, t.project_id, c.epoch, c.position, c.digest, c.prev_digest, t.body_digest, t.kind, t.txn,
              t.person_id, t.sub_id, t.payload, t.created_at, t.traceparent
            from fact_new t join fact_chain c on c.project_id = t.project_id and c.step = t.step`,
          fact_changed: sql`
            select distinct on (t.project_id, s.key) t.project_id, s.key, s.value, c.position
            from fact_new t join fact_chain c on c.project_id = t.project_id and c.step = t.step
            cross join jsonb_to_recordset(t.state) s(key text, value jsonb)
            order by t.project_id, s.key, t.step desc`,
          fact_ended: sql`
            delete from lifecycle_state l using fact_changed
            where l.project_id = fact_changed.project_id and l.key = fact_changed.key
              and fact_changed.value is null`,
          fact_folded: sql`
            insert into lifecycle_state (project_id, key, value, position)
            select project_id, key, value, position from fact_changed where value is not null
            on conflict (project_id, key) do update set value = excluded.value, position = excluded.position`,
          fact_moved: sql`
            update lifecycle_heads h set epoch = c.epoch, position = c.position, digest = c.digest
            from (
              select distinct on (project_id) project_id, epoch, position, digest from fact_chain
              order by project_id, step desc
            ) c
            where h.project_id = c.project_id`,
        }
        return Object.entries(parts).map(([name, statement]): Part => ({ name, statement }))
      }

      const projectsOf = (events: ReadonlyArray<Placed>) =>
        [...new Set(events.map(({ projectId }) => projectId))].sort()

      /**
       * Makes the heads that are missing, and begins a new epoch first where the database was restored or failed over,
       * so that no event gets a position of an epoch that is over.
       */
      const prepare = Effect.fnUntraced(function* (projects: ReadonlyArray<string>) {
        const [compared] = yield* sql<{ same: boolean }>`
          with made as (
            insert into lifecycle_heads (project_id, epoch)
            select p, i.epoch from unnest(${projects}::text[]) p cross join installation i on conflict do nothing
          )
          select ${same} as same from installation i`
        if (!compared!.same) yield* settleEpoch(sql)
      })

      const placeInTransaction = Effect.fnUntraced(function* (events: ReadonlyArray<Placed>) {
        const projects = projectsOf(events)
        yield* prepare(projects)
        const those = idIn(sql, "project_id", "text", projects)
        yield* sql`select from lifecycle_heads where ${those} order by project_id for update`
        const heads = sql`(select * from lifecycle_heads where ${those})`
        yield* writeParts(sql, placing(events, heads))
        yield* sql.afterCommit(wakeUps.notify(lifecycleTopic, projects))
      })

      /**
       * The same as a part of a fenced write, whose last fence locks the heads. The keys of the state that are deleted
       * belong to aggregates that the write's other fences hold, so the statement's snapshot sees them.
       */
      const positioned: Kind<Placed> = {
        name: "lifecycle",
        parts: (events) => {
          const held = sql`
            select * from lifecycle_heads where ${idIn(sql, "project_id", "text", projectsOf(events))}
            order by project_id for update`
          return [{ name: "fact_held", statement: held }, ...placing(events, sql`fact_held`)]
        },
      }

      const headsHeld = (projects: ReadonlyArray<string>): Fence => ({
        rows: projects.length,
        statement: (earlier) =>
          sql`select 1 from lifecycle_heads h join installation i on h.epoch <= i.epoch and ${same}
            where ${idIn(sql, "h.project_id", "text", projects)} and ${earlier} order by h.project_id for update of h`,
      })

      const placeFenced = Effect.fnUntraced(function* (events: ReadonlyArray<Placed>) {
        const projects = projectsOf(events)
        // A missing head may be why the first attempt was not written: a project has none before its first event.
        if (yield* isRepeated) yield* sql.withTransaction(prepare(projects))
        yield* fenceLast(sql, headsHeld(projects))
        yield* write(sql, positioned, events)
        yield* afterCommit(sql, wakeUps.notify(lifecycleTopic, projects))
      })

      const append = Effect.fn("EventLog.append")(function* (...events: ReadonlyArray<NewLifecycleEvent>) {
        if (events.length === 0) return []
        const [txn, ...ids] = yield* (yield* Ids).batch(events.length + 1)
        const millis = yield* Clock.currentTimeMillis
        const traceparent = yield* traceparentNow
        const placed = events.map((event, i): Placed => {
          const subId = subIdOf(event)
          const payload: Json = {
            event_timestamp: Math.floor(millis / 1000),
            initiating_entity: event.initiatedBy,
            ...event.payload,
          }
          return {
            id: ids[i]!,
            projectId: event.projectId,
            kind: event.kind,
            txn: txn!,
            personId: event.person?.id ?? null,
            subId,
            payload,
            bodyDigest: digestOf({ sub_id: subId, events: { [lifecycleEventKinds[event.kind].uri]: payload } }),
            at: new Date(millis),
            traceparent,
          }
        })
        yield* either({ transaction: last("lifecycle", placed, placeInTransaction), fencedWrite: placeFenced(placed) })
        return ids
      })

      return EventLog.of({
        append,
        toldDisabled: (projectId, person) =>
          Effect.map(
            sql`select from lifecycle_state
              where project_id = ${projectId} and key = ${accountKey(person)} and value ->> 'status' = 'disabled'`,
            (rows) => rows.length > 0,
          ),
      })
    }),
  )
}
