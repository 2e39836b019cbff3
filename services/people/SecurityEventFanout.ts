/**
 * Appends events about a person's credentials and sessions to every project that has to hear of the person: in the
 * transaction of the change; where that is more projects than one transaction should lock, or more events than it
 * should append, durable jobs append the rest.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { CredentialType } from "../../schemas/identity/CredentialAction.ts"
import { EventLog, type NewLifecycleEvent } from "../lifecycle/EventLog.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobKind, Jobs, type JobWorker, worker } from "../platform/messaging/Jobs.ts"
import { type InTransaction, runOnce } from "../platform/database/UnitOfWork.ts"
import { type FanoutLimits, fanoutLimits, personOf, persons, some } from "./PersonAudience.ts"

/** A change of a person's credentials or sessions. */
export type Happening =
  | {
    readonly kind: "credential-change"
    readonly credentialType: CredentialType
    readonly changeType: "create" | "update" | "delete"
    readonly aaguid: string | null
  }
  | { readonly kind: "recovery-information-changed" }
  /** `sid`: the issuer's name of the session, which is how products know it; null: all sessions of the person. */
  | { readonly kind: "session-revoked"; readonly sid: string | null }

/** Who brought the change about: the person, or an identity provider. */
type Initiator = "user" | "system"

const eventOf = (happening: Happening): Pick<NewLifecycleEvent, "kind" | "payload" | "session"> => {
  if (happening.kind === "session-revoked") {
    return { kind: happening.kind, ...(happening.sid === null ? {} : { session: happening.sid }) }
  }
  if (happening.kind === "recovery-information-changed") return { kind: happening.kind }
  const { aaguid, changeType, credentialType, kind } = happening
  return {
    kind,
    payload: {
      credential_type: credentialType,
      change_type: changeType,
      ...(aaguid === null ? {} : { fido2_aaguid: aaguid }),
    },
  }
}

interface Args {
  readonly personId: PersonId
  readonly happenings: ReadonlyArray<Happening>
  /** The last project that got its events, in the order of code units. */
  readonly cursor: string
  readonly at: number
  /** Jobs of earlier releases lack it: the person. */
  readonly by?: Initiator
}

const fanoutJob: JobKind<Args> = { kind: "people.tellings" }

/**
 * Events that one transaction appends at most. Ten thousand sessions still end at once; their events follow by jobs.
 */
const eventsAtOnce = 1_000

/** Appends events by jobs only, which the current transaction adds: for changes outside a command. */
export const tellLater = (jobs: Jobs["Service"], most = eventsAtOnce) =>
  Effect.fnUntraced(function* (personId: PersonId, happenings: ReadonlyArray<Happening>) {
    const at = yield* Clock.currentTimeMillis
    for (let from = 0; from < happenings.length; from += most) {
      yield* jobs.add(fanoutJob, { personId, happenings: happenings.slice(from, from + most), cursor: "", at })
    }
  })

export class SecurityEventFanout extends Context.Service<SecurityEventFanout, {
  /**
   * Appends the events in the current transaction, with one cause and by default initiated by the person. Returns the
   * ids of the events that this transaction appends.
   */
  readonly tell: (
    personId: PersonId,
    happenings: ReadonlyArray<Happening>,
    by?: Initiator,
  ) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError, InTransaction>
  /** For the worker of jobs. */
  readonly worker: JobWorker
}>()("bailiwick/services/people/SecurityEventFanout") {
  /** `events`: how many one transaction appends at most. */
  static readonly layer = (limits: FanoutLimits = fanoutLimits, events = eventsAtOnce) =>
    Layer.effect(
      SecurityEventFanout,
      Effect.gen(function* () {
        const database = yield* Database
        const jobs = yield* Jobs
        const eventLog = yield* EventLog
        const { audienceOf } = persons(database.sql)

        const later = tellLater(jobs, events)

        const tellSome = Effect.fnUntraced(function* (args: Args, { atOnce, chunk }: FanoutLimits) {
          const room = Math.max(1, Math.floor(events / args.happenings.length))
          const most = { atOnce: Math.min(atOnce, room), chunk: Math.min(chunk, room) }
          const { last, now } = some(yield* audienceOf(args.personId, args.at), args.cursor, most)
          const ids = yield* eventLog.append(...args.happenings.flatMap((happening) =>
            now.map((hearer): NewLifecycleEvent => ({
              ...eventOf(happening),
              projectId: hearer.projectId,
              institutionId: hearer.institutionId,
              person: personOf(hearer),
              initiatedBy: args.by ?? "user",
            }))
          ))
          return { ids, last }
        })

        const tell = Effect.fn("SecurityEventFanout.tell")(
          function* (personId: PersonId, happenings: ReadonlyArray<Happening>, by: Initiator = "user") {
            if (happenings.length === 0) {
              return []
            }
            const first = happenings.slice(0, events)
            const args = { personId, happenings: first, cursor: "", at: yield* Clock.currentTimeMillis, by }
            const { ids, last } = yield* tellSome(args, limits)
            yield* later(personId, happenings.slice(events))
            if (last !== null) {
              yield* jobs.add(fanoutJob, { ...args, cursor: last })
            }
            return ids
          },
        )

        const next = Effect.fnUntraced(function* (args: Args, cursor: unknown) {
          const from = typeof cursor === "string" ? cursor : args.cursor
          const batch = tellSome({ ...args, cursor: from }, { atOnce: limits.chunk, chunk: limits.chunk })
          const { ids, last } = yield* Effect.provideService(runOnce(batch), Database, database)
          return { done: ids.length, next: last === null ? null : { cursor: last } }
        })

        return SecurityEventFanout.of({ tell, worker: worker(fanoutJob, next) })
      }),
    )
}
