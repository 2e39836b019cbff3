/**
 * Renews the leases of streams while a POST is under way: leases are short, so that another process soon gets what a
 * killed process held, and receivers may take longer than a lease. Where a lease could not be renewed in time, or
 * another process has the claim, the POST is cut off before the lease ends: only one process pushes a stream at a time.
 */
import { Clock, Effect } from "effect"
import { Database } from "../../platform/database/Database.ts"
import type { PushState } from "./PushState.ts"

/** Steps of a lease: it is renewed at its half, by a statement of at most one step, and cut off at the last one. */
const steps = 6

/** Runs until the scope ends; returns a function that sends a message of a session, with null where it was cut off. */
export const keeping = Effect.fnUntraced(function* (leaseMillis: number) {
  const { sql } = yield* Database
  const under = new Map<PushState, AbortController>()
  const step = leaseMillis / steps

  const endingWithin = (millis: number, now: number) =>
    [...under.keys()].filter(({ leaseUntil }) => leaseUntil - now <= millis)

  const cutOff = Effect.map(Clock.currentTimeMillis, (now) => {
    for (const session of endingWithin(step, now)) under.get(session)?.abort()
  })

  const renew = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const due = endingWithin(leaseMillis / 2, now)
    if (due.length === 0) return
    const until = now + leaseMillis
    const kept = yield* sql<{ id: string; claim: bigint }>`
      update lifecycle_streams t set lease_until = greatest(t.lease_until, ${new Date(until)})
      from unnest(${due.map(({ id }) => id)}::uuid[], ${due.map(({ claim }) => String(claim))}::bigint[]) r(id, claim)
      where t.id = r.id and t.claim = r.claim returning t.id::text as id`
    const ours = new Set(kept.map(({ id }) => id))
    for (const session of due) {
      if (ours.has(session.id)) session.leaseUntil = Math.max(session.leaseUntil, until)
      else under.get(session)?.abort()
    }
  })

  yield* Effect.sleep(step).pipe(
    Effect.andThen(cutOff),
    Effect.andThen(renew),
    Effect.timeoutOption(2 * step),
    Effect.catchCause((cause) => Effect.logWarning("leases of streams could not be renewed", cause)),
    Effect.andThen(cutOff),
    Effect.forever,
    Effect.forkScoped,
  )

  return <A>(session: PushState, send: (signal: AbortSignal) => Promise<A>): Effect.Effect<A | null> =>
    Effect.suspend(() => {
      const controller = new AbortController()
      under.set(session, controller)
      return Effect.promise(() => send(controller.signal)).pipe(
        Effect.map((outcome) => controller.signal.aborted ? null : outcome),
        Effect.ensuring(Effect.sync(() => void under.delete(session))),
      )
    })
})
