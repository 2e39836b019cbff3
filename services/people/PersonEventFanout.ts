/**
 * Appends the events about a person that are not about Access: disabled, enabled, purged, or another identity. In the
 * transaction of the change, to every project that hears of the person; where these are more projects than one
 * transaction should lock, a durable job appends the rest, some at a time, from the person's state at that time.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { EventLog, type NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobKind, Jobs, type JobWorker, worker } from "../platform/messaging/Jobs.ts"
import { type InTransaction, runOnce } from "../platform/database/UnitOfWork.ts"
import {
  type Audience,
  type FanoutLimits,
  fanoutLimits,
  personOf,
  persons,
  some as someOf,
  standingOf,
} from "./PersonAudience.ts"

/** An identity of a person: a token's issuer and subject. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

/** A change of a known person. */
export interface PersonChange {
  readonly personId: PersonId
  /** The person was disabled, enabled or purged. */
  readonly standing: boolean
  /** Set where the person has another identity now. */
  readonly renamed: { readonly was: Identity; readonly is: Identity } | null
  /** Who disabled or enabled the person; by default the directory. */
  readonly by?: "issuer" | "operator"
}

interface Args extends PersonChange {
  /** The last project that got its events, in the order of code units. */
  readonly cursor: string
  readonly at: number
}

const fanoutJob: JobKind<Args> = { kind: "people.news" }

const codes = { "account-purged": "REMOVED", "account-disabled": "DISABLED", "account-enabled": "ENABLED" } as const
const reason = (what: string, by: PersonChange["by"]) => ({
  reason_admin: { en: `PERSON_${what}_BY_${(by ?? "directory").toUpperCase()}` },
})

const eventsOf = ({ by, personId, renamed, standing }: PersonChange, hearer: Audience) => {
  const about = { projectId: hearer.projectId, institutionId: hearer.institutionId, initiatedBy: "system" as const }
  const events: Array<NewLifecycleEvent> = []
  // Sessions of the old identity belong to no person any more.
  if (renamed !== null && hearer.id === personId) {
    const payload = reason("IDENTITY_CHANGED", undefined)
    const previous = { format: "iss_sub", iss: renamed.was.issuer, sub: renamed.was.subject }
    const id = hearer.canonical
    events.push(
      { ...about, kind: "session-revoked", person: { id, ...renamed.was }, payload },
      { ...about, kind: "identity-linked", person: { id, ...renamed.is }, payload: { ...payload, previous } },
    )
  }
  const kind = standingOf(hearer) ?? "account-enabled"
  if (standing) events.push({ ...about, kind, person: personOf(hearer), payload: reason(codes[kind], by) })
  return events
}

export class PersonEventFanout extends Context.Service<PersonEventFanout, {
  /** Appends the events in the current transaction, which has written the person already. */
  readonly tell: (change: PersonChange) => Effect.Effect<void, SqlError.SqlError, InTransaction>
  /** For the worker of jobs. */
  readonly worker: JobWorker
}>()("bailiwick/services/people/PersonEventFanout") {
  static readonly layer = (limits: FanoutLimits = fanoutLimits) =>
    Layer.effect(
      PersonEventFanout,
      Effect.gen(function* () {
        const database = yield* Database
        const jobs = yield* Jobs
        const eventLog = yield* EventLog
        const people = persons(database.sql)

        /** Appends the events of the next projects after `cursor`; returns the last of them where more are left. */
        const some = Effect.fnUntraced(
          function* (change: PersonChange, at: number, cursor: string, most: FanoutLimits) {
            const known = yield* people.lock([change.personId])
            if (known.length === 0) return { done: 0, last: null }
            const { last, now } = someOf(yield* people.audienceOf(change.personId, at), cursor, most)
            yield* eventLog.append(...now.flatMap((hearer) => eventsOf(change, hearer)))
            return { done: now.length, last }
          },
        )

        const tell = Effect.fn("PersonEventFanout.tell")(function* (change: PersonChange) {
          const at = yield* Clock.currentTimeMillis
          const { last } = yield* some(change, at, "", limits)
          if (last !== null) yield* jobs.add(fanoutJob, { ...change, cursor: last, at })
        })

        const next = Effect.fnUntraced(function* ({ at, cursor: first, ...change }: Args, cursor: unknown) {
          const from = typeof cursor === "string" ? cursor : first
          const batch = some(change, at, from, { atOnce: limits.chunk, chunk: limits.chunk })
          const { done, last } = yield* Effect.provideService(runOnce(batch), Database, database)
          return { done, next: last === null ? null : { cursor: last } }
        })

        return PersonEventFanout.of({ tell, worker: worker(fanoutJob, next) })
      }),
    )
}
