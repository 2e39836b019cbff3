/** The status of keys and of a transition, for operators. */
import { Clock, Effect } from "effect"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../platform/database/Database.ts"
import type { KeyState } from "./KeyGeneration.ts"
import { waitingFor } from "./UnacknowledgedConsumers.ts"

export interface KeyStanding {
  readonly kid: string
  readonly state: KeyState
  /** When the key came into its state. */
  readonly since: Date
  /** The number of projects that the key signs for. */
  readonly projects: number
}

/** A project that has not switched, and the consumers that it waits for. */
export interface WaitingProject {
  readonly projectId: ProjectId
  readonly consumers: ReadonlyArray<string>
}

export interface TransitionStanding {
  readonly successor: string
  readonly notBefore: Date
  readonly deadlineAt: Date
  /** Projects whose history lacks the announcement. */
  readonly untold: number
  readonly switched: number
  /** Projects that still have to switch. */
  readonly left: number
  /** Some of the projects that wait for a consumer, ids ascending. */
  readonly waiting: ReadonlyArray<WaitingProject>
}

export interface Standings {
  /** In the order in which they follow each other. */
  readonly keys: ReadonlyArray<KeyStanding>
  /**
   * The kids that an operator gives to a product that connects for the first time, in that order: during a transition
   * the product's project may have switched to the published key or not, so either may sign.
   */
  readonly pins: ReadonlyArray<string>
  readonly transition: TransitionStanding | null
}

/** States of keys that may sign messages after a product's first snapshot; a key that only verifies signs none. */
const pinned: ReadonlySet<KeyState> = new Set(["active", "published", "announced"])

/** Waiting projects that are named at most. */
const named = 100

export const standings = Effect.map(Database, ({ sql }) => {
  const transition = Effect.gen(function* () {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* sql<{
      readonly successor: string
      readonly not_before: Date
      readonly deadline_at: Date
      readonly untold: number
      readonly switched: number
      readonly left: number
    }>`
      select n.successor, n.not_before, n.deadline_at,
        (select count(*)::int from lifecycle_project_keys p where p.news_id < n.id) as untold,
        (select count(*)::int from lifecycle_project_keys p where p.kid = n.successor) as switched,
        (select count(*)::int from lifecycle_project_keys p where p.kid <> n.successor) as left
      from lifecycle_key_news n where n.ended_at is null`
    if (row === undefined) return null
    const { deadline_at: deadlineAt, not_before: notBefore, ...counts } = row
    const waiting = yield* sql<{ readonly project_id: ProjectId; readonly consumers: ReadonlyArray<string> }>`
      select p.project_id, w.consumers
      from lifecycle_project_keys p
      left join projects pr on pr.id = p.project_id
      cross join lateral (select array(${waitingFor(sql, now)} order by 1) as consumers) w
      where p.kid <> ${row.successor} and w.consumers <> '{}'
      order by p.project_id limit ${named}`
    return {
      ...counts,
      deadlineAt,
      notBefore,
      waiting: waiting.map(({ consumers, project_id }) => ({ projectId: project_id, consumers })),
    }
  })

  return Effect.gen(function* () {
    const keys = yield* sql<KeyStanding>`
      select k.kid, k.state, k.changed_at as since,
        (select count(*)::int from lifecycle_project_keys p where p.kid = k.kid) as projects
      from signing_keys k order by k.succession`
    const pins = keys.filter(({ state }) => pinned.has(state)).map(({ kid }) => kid)
    return { keys, pins, transition: yield* transition } satisfies Standings
  })
})
