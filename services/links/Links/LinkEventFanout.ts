/**
 * Appends the event `identity-linked` to the projects that know one of the linked identities: each gets the identity
 * that it knows and the one linked with it. In the transaction of the merge; where more projects than one transaction
 * should lock have to get it, a durable job appends the rest.
 */
import { Clock, Effect } from "effect"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"
import { EventLog, type NewLifecycleEvent } from "../../lifecycle/EventLog.ts"
import { Database } from "../../platform/database/Database.ts"
import { type JobKind, Jobs, worker } from "../../platform/messaging/Jobs.ts"
import { runOnce } from "../../platform/database/UnitOfWork.ts"
import type { Identity } from "../../people/PersonEventFanout.ts"
import { type Audience, type FanoutLimits, fanoutLimits, personOf, persons, some } from "../../people/PersonAudience.ts"

/** The two identities that are linked, and their persons. */
interface Pair {
  readonly author: PersonId
  /** The author's first identity. */
  readonly own: Identity
  /** The other identity, which is linked with the author's. */
  readonly linked: Identity
  /** Ids of the persons who are merged into the author; empty where the identity had no holder. */
  readonly others: ReadonlyArray<PersonId>
}

interface Args extends Pair {
  /** The last project that got its event, in the order of code units. */
  readonly cursor: string
  readonly at: number
}

const linksJob: JobKind<Args> = { kind: "people.links" }

const eventOf = ({ author, linked, others, own }: Pair, hearer: Audience): NewLifecycleEvent => {
  const { issuer, subject } = others.includes(hearer.id) ? own : linked
  return {
    kind: "identity-linked",
    projectId: hearer.projectId,
    institutionId: hearer.institutionId,
    person: { ...personOf(hearer), id: author },
    payload: { linked: { format: "iss_sub", iss: issuer, sub: subject } },
    initiatedBy: "user",
  }
}

export const linkEventFanout = Effect.fnUntraced(function* (limits: FanoutLimits = fanoutLimits) {
  const database = yield* Database
  const { sql } = database
  const jobs = yield* Jobs
  const eventLog = yield* EventLog
  const { audienceOf } = persons(sql)

  /** The pair of a request. To be called before the merge, while the persons can still be told apart. */
  const about = Effect.fnUntraced(function* (
    { author, fields, person_id: other }: Pick<RequestRow, "author" | "fields" | "person_id">,
  ) {
    const [own] = yield* sql<Identity>`select issuer, subject from people where id = ${author}`
    const names = yield* sql<{ id: PersonId }>`select id from people where id = ${other} or merged_into = ${other}`
    return { author, own: own!, linked: fields as unknown as Identity, others: names.map(({ id }) => id) }
  })

  const tellSome = Effect.fnUntraced(function* (args: Args, most: FanoutLimits) {
    const { last, now } = some(yield* audienceOf(args.author, args.at), args.cursor, most)
    return { ids: yield* eventLog.append(...now.map((hearer) => eventOf(args, hearer))), last }
  })

  /** Appends the events in the current transaction, after the merge; returns the id of the first. */
  const tell = Effect.fnUntraced(function* (pair: Pair) {
    const args = { ...pair, cursor: "", at: yield* Clock.currentTimeMillis }
    const { ids, last } = yield* tellSome(args, limits)
    if (last !== null) yield* jobs.add(linksJob, { ...args, cursor: last })
    return ids[0]
  })

  const next = Effect.fnUntraced(function* (args: Args, cursor: unknown) {
    const from = typeof cursor === "string" ? cursor : args.cursor
    const batch = tellSome({ ...args, cursor: from }, { atOnce: limits.chunk, chunk: limits.chunk })
    const { ids, last } = yield* Effect.provideService(runOnce(batch), Database, database)
    return { done: ids.length, next: last === null ? null : { cursor: last } }
  })

  return { about, tell, worker: worker(linksJob, next) }
})
