/**
 * What products have to know of a person beside its Access: disabled, enabled, purged, or known by another identity. Told
 * in the transaction of the change to every project that hears of the person; where those are more than one transaction
 * should hold the heads of, the rest hear of it by a durable job, some at a time, from the person as it is by then.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { type Fact, Positions } from "../lifecycle/Positions.ts"
import { Database } from "../platform/database/Database.ts"
import { type JobKind, Jobs, type JobWorker, worker } from "../platform/messaging/Jobs.ts"
import { inTransaction } from "../platform/database/Transact.ts"
import { type Audience, type NewsLimits, newsLimits, personOf, persons, some as someOf, standingOf } from "./Persons.ts"

/** Who a token speaks for. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

/** What became of a known person. */
export interface PersonChange {
  readonly personId: string
  /** Whether it was disabled, enabled or purged. */
  readonly standing: boolean
  /** Set where it goes by another identity now. */
  readonly renamed: { readonly was: Identity; readonly is: Identity } | null
}

interface Args extends PersonChange {
  /** The last project that was told, in the order of code units. */
  readonly cursor: string
  readonly at: number
}

const newsJob: JobKind<Args> = { kind: "people.news" }

const codes = { "account-purged": "REMOVED", "account-disabled": "DISABLED", "account-enabled": "ENABLED" } as const
const reason = (what: string) => ({ reason_admin: { en: `PERSON_${what}_BY_DIRECTORY` } })

const factsOf = ({ personId, renamed, standing }: PersonChange, hearer: Audience) => {
  const about = { projectId: hearer.projectId, institutionId: hearer.institutionId, initiatedBy: "system" as const }
  const facts: Array<Fact> = []
  // Sessions of the old identity speak for nobody any more.
  if (renamed !== null && hearer.id === personId) {
    const payload = reason("IDENTITY_CHANGED")
    const previous = { format: "iss_sub", iss: renamed.was.issuer, sub: renamed.was.subject }
    const id = hearer.canonical
    facts.push(
      { ...about, kind: "session-revoked", person: { id, ...renamed.was }, payload },
      { ...about, kind: "identity-linked", person: { id, ...renamed.is }, payload: { ...payload, previous } },
    )
  }
  const kind = standingOf(hearer) ?? "account-enabled"
  if (standing) facts.push({ ...about, kind, person: personOf(hearer), payload: reason(codes[kind]) })
  return facts
}

export class PersonNews extends Context.Service<PersonNews, {
  /** Tells it in the current transaction, which has written the person already. */
  readonly tell: (change: PersonChange) => Effect.Effect<void, SqlError.SqlError>
  /** For whoever works off jobs. */
  readonly worker: JobWorker
}>()("bailiwick/services/people/PersonNews") {
  static readonly layer = (limits: NewsLimits = newsLimits) =>
    Layer.effect(
      PersonNews,
      Effect.gen(function* () {
        const database = yield* Database
        const jobs = yield* Jobs
        const positions = yield* Positions
        const people = persons(database.sql)

        /** Tells the projects after `cursor`, and gives the last one where some are left. */
        const some = Effect.fnUntraced(function* (change: PersonChange, at: number, cursor: string, most: NewsLimits) {
          const known = yield* people.lock([change.personId])
          if (known.length === 0) return { done: 0, last: null }
          const { last, now } = someOf(yield* people.audienceOf(change.personId, at), cursor, most)
          yield* positions.append(...now.flatMap((hearer) => factsOf(change, hearer)))
          return { done: now.length, last }
        })

        const tell = Effect.fn("PersonNews.tell")(function* (change: PersonChange) {
          const at = yield* Clock.currentTimeMillis
          const { last } = yield* some(change, at, "", limits)
          if (last !== null) yield* jobs.add(newsJob, { ...change, cursor: last, at })
        })

        const next = Effect.fnUntraced(function* ({ at, cursor: first, ...change }: Args, cursor: unknown) {
          const from = typeof cursor === "string" ? cursor : first
          const told = some(change, at, from, { atOnce: limits.chunk, chunk: limits.chunk })
          const { done, last } = yield* Effect.provideService(inTransaction(told), Database, database)
          return { done, next: last === null ? null : { cursor: last } }
        })

        return PersonNews.of({ tell, worker: worker(newsJob, next) })
      }),
    )
}
