/**
 * The audit of failed requests.
 *
 * A recognised actor's failure, and every fault of ours (500), is one row at once. What nobody recognised costs an
 * attacker nothing, what is beyond a limit must cost us little, and what failed for want of the database cannot be
 * written yet; so these are gathered: one row per actor, credential prefix, code and route that lists the request ids. The
 * row's id is known before it is written, so an answer can name it. It is written one second after its first refusal;
 * while a prefix goes on failing the pause doubles up to half a minute, so a burst of a million leaves a few rows a
 * minute and a single failure is found at once. What waits is written when the server stops; what waits when the process
 * is killed is lost.
 */
import { Clock, Context, Effect, Fiber, Layer, Schedule, Semaphore } from "effect"
import { Audit } from "../../../services/platform/Audit.ts"
import { CurrentRequest } from "../../../services/platform/CurrentRequest.ts"
import { Database } from "../../../services/platform/Database.ts"
import { Ids } from "../../../services/platform/Ids.ts"

export interface Refusal {
  readonly requestId: string
  /** The route's template, null for an unknown path. */
  readonly route: string | null
  readonly status: number
  readonly code: string
  readonly actor: string | null
  /** What kind of credential came, with the public prefix of a key: `mail_k_3fA9xQ21`, `token`, `cookie`, `none`. */
  readonly credential: string
}

const outcomeOf = ({ status }: Refusal) => status >= 500 ? "failed" : "refused"

interface Gathered {
  readonly id: string
  readonly at: number
  readonly first: Refusal
  /** Whose they all are, or null. */
  readonly actor: string | null
  readonly requestIds: Array<string>
  count: number
}

/** Kinds of refusal that wait at once, and request ids that one row lists; beyond that only the count grows. */
const maxWaiting = 200
const maxListed = 500

const firstPause = 1_000
const longestPause = 30_000

export class Refusals extends Context.Service<Refusals, {
  /** Writes down a failed request; gives the audit record's id, or null where it cannot be written. */
  readonly record: (refusal: Refusal) => Effect.Effect<string | null>
}>()("bailiwick/http/floor/Refusals") {
  static readonly layer = Layer.effect(
    Refusals,
    Effect.gen(function* () {
      const audit = yield* Audit
      const { sql } = yield* Database
      const scope = yield* Effect.scope
      const waiting = new Map<string, Gathered>()
      const pauses = new Map<string, { readonly pause: number; readonly until: number }>()
      const writers = Semaphore.makeUnsafe(2)

      const write = Effect.fnUntraced(function* (key: string) {
        const gathered = waiting.get(key)
        if (gathered === undefined) return
        waiting.delete(key)
        const { first } = gathered
        const row = {
          id: gathered.id,
          at: new Date(gathered.at),
          request_id: first.requestId,
          route: first.route,
          action: "request.failed",
          actor: gathered.actor,
          subject: null,
          outcome: outcomeOf(first),
          status: first.status,
          code: first.code,
          details: JSON.stringify({
            credential: first.credential,
            count: gathered.count,
            request_ids: gathered.requestIds,
          }),
        }
        yield* sql`insert into audit_records ${sql.insert(row)}`.pipe(
          Effect.retry({ times: 10, schedule: Schedule.spaced("3 seconds") }),
          writers.withPermits(1),
          Effect.catch((error) => Effect.logWarning("refused requests were not audited", error.message)),
        )
      })

      const pauseOf = (key: string, now: number): number => {
        for (const [known, { until }] of pauses) {
          if (until > now) break
          pauses.delete(known)
        }
        const pause = Math.min(longestPause, (pauses.get(key)?.pause ?? firstPause / 2) * 2)
        pauses.delete(key)
        pauses.set(key, { pause, until: now + 2 * longestPause })
        return pause
      }

      const gather = Effect.fnUntraced(function* (refusal: Refusal) {
        const known = [refusal.status, refusal.code, refusal.credential, refusal.route, refusal.actor].join(" ")
        const alone = waiting.has(known) || waiting.size < maxWaiting
        const key = alone ? known : String(refusal.status)
        const gathered = waiting.get(key)
        if (gathered) {
          gathered.count++
          if (gathered.requestIds.length < maxListed) gathered.requestIds.push(refusal.requestId)
          return gathered.id
        }
        const id = yield* (yield* Ids).next
        const now = yield* Clock.currentTimeMillis
        const actor = alone ? refusal.actor : null
        waiting.set(key, { id, at: now, first: refusal, actor, requestIds: [refusal.requestId], count: 1 })
        yield* write(key).pipe(Effect.delay(pauseOf(key, now)), Effect.forkIn(scope))
        return id
      })

      const append = (refusal: Refusal) =>
        audit.append({
          action: "request.failed",
          actor: refusal.actor,
          subject: null,
          outcome: outcomeOf(refusal),
          status: refusal.status,
          code: refusal.code,
        }).pipe(
          Effect.provideService(CurrentRequest, { requestId: refusal.requestId, route: refusal.route }),
          Effect.map(([id]) => id ?? null),
          Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.succeed(null) }),
          Effect.interruptible,
          Effect.catchCause((cause) => Effect.as(Effect.logWarning("a failed request was not audited", cause), null)),
          // In a fiber of its own: the request's may have been interrupted, which is what is to be written down.
          Effect.forkIn(scope),
          Effect.flatMap(Fiber.join),
        )

      yield* Effect.addFinalizer(() =>
        Effect.forEach([...waiting.keys()], write, { discard: true }).pipe(
          Effect.timeoutOrElse({ duration: "2 seconds", orElse: () => Effect.void }),
          Effect.interruptible,
        )
      )

      return Refusals.of({
        record: (refusal) =>
          refusal.status === 429 || refusal.actor === null && refusal.status !== 500
            ? gather(refusal)
            : append(refusal),
      })
    }),
  )
}
