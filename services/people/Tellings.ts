/**
 * What happened to a person's credentials and sessions, told to every project that has to hear of the person: in the
 * transaction that did it, and where those are more than one transaction should hold the heads of, the rest by a durable
 * job.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { CredentialType } from "../../schemas/identity/CredentialActions.ts"
import { type Fact, Positions } from "../lifecycle/Positions.ts"
import { Database } from "../platform/Database.ts"
import { type JobKind, Jobs, type JobWorker, worker } from "../platform/Jobs.ts"
import { inTransaction } from "../platform/Transact.ts"
import { type NewsLimits, newsLimits, personOf, persons, some } from "./Persons.ts"

/** One thing that happened. */
export type Happening =
  | {
    readonly kind: "credential-change"
    readonly credentialType: CredentialType
    readonly changeType: "create" | "update" | "delete"
    readonly aaguid: string | null
  }
  | { readonly kind: "recovery-information-changed" }
  /** `sid`: the issuer's name of the session, which is how products know it. */
  | { readonly kind: "session-revoked"; readonly sid: string }

const factOf = (happening: Happening): Pick<Fact, "kind" | "payload" | "session"> => {
  if (happening.kind === "session-revoked") return { kind: happening.kind, session: happening.sid }
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
  readonly personId: string
  readonly happenings: ReadonlyArray<Happening>
  /** The last project that was told, in the order of code units. */
  readonly cursor: string
  readonly at: number
}

const tellingsJob: JobKind<Args> = { kind: "people.tellings" }

/** Tells it by a job alone, which the current transaction adds: for whoever has no command to tell it in. */
export const tellLater = (jobs: Jobs["Service"]) =>
  Effect.fnUntraced(function* (personId: string, happenings: ReadonlyArray<Happening>) {
    yield* jobs.add(tellingsJob, { personId, happenings, cursor: "", at: yield* Clock.currentTimeMillis })
  })

export class Tellings extends Context.Service<Tellings, {
  /**
   * Tells it in the current transaction, which must be one of `Transact`, of one cause and begun by the person. Gives the
   * ids of the events that were told in it.
   */
  readonly tell: (
    personId: string,
    happenings: ReadonlyArray<Happening>,
  ) => Effect.Effect<ReadonlyArray<string>, SqlError.SqlError>
  /** For whoever works off jobs. */
  readonly worker: JobWorker
}>()("bailiwick/services/people/Tellings") {
  static readonly layer = (limits: NewsLimits = newsLimits) =>
    Layer.effect(
      Tellings,
      Effect.gen(function* () {
        const database = yield* Database
        const jobs = yield* Jobs
        const positions = yield* Positions
        const { audienceOf } = persons(database.sql)

        const tellSome = Effect.fnUntraced(function* (args: Args, most: NewsLimits) {
          const { last, now } = some(yield* audienceOf(args.personId, args.at), args.cursor, most)
          const ids = yield* positions.append(...args.happenings.flatMap((happening) =>
            now.map((hearer): Fact => ({
              ...factOf(happening),
              projectId: hearer.projectId,
              institutionId: hearer.institutionId,
              person: personOf(hearer),
              initiatedBy: "user",
            }))
          ))
          return { ids, last }
        })

        const tell = Effect.fn("Tellings.tell")(function* (personId: string, happenings: ReadonlyArray<Happening>) {
          if (happenings.length === 0) return []
          const args = { personId, happenings, cursor: "", at: yield* Clock.currentTimeMillis }
          const { ids, last } = yield* tellSome(args, limits)
          if (last !== null) yield* jobs.add(tellingsJob, { ...args, cursor: last })
          return ids
        })

        const next = Effect.fnUntraced(function* (args: Args, cursor: unknown) {
          const from = typeof cursor === "string" ? cursor : args.cursor
          const told = tellSome({ ...args, cursor: from }, { atOnce: limits.chunk, chunk: limits.chunk })
          const { ids, last } = yield* Effect.provideService(inTransaction(told), Database, database)
          return { done: ids.length, next: last === null ? null : { cursor: last } }
        })

        return Tellings.of({ tell, worker: worker(tellingsJob, next) })
      }),
    )
}
