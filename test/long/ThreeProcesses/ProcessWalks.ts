/**
 * Domains that change hands again and again, by a client that knows several processes and may lose any of them at any
 * moment: an unanswered request is repeated at another process until it is answered. Each transfer's end is planned.
 */
import { assert } from "@effect/vitest"
import { Effect, Semaphore } from "effect"
import { addressOf, type Owner } from "../../e2e/ClusterFixture.ts"
import type { Reply } from "../../e2e/support/ApiClient.ts"
import type { ProgramInstance } from "../../e2e/support/ProgramInstance.ts"

type Ending = "completed" | "cancelled" | "declined"

/** The endings that each domain goes through, one after the other from some place on. */
export const endings: ReadonlyArray<Ending> = ["completed", "cancelled", "declined", "completed", "cancelled"]

/** The safety window in this test. */
export const windowMillis = 2_000

export interface Walked {
  readonly domainId: string
  readonly owner: string
  readonly ended: ReadonlyArray<Ending>
}

export interface ProcessWalks {
  /** Domains that changed hands, or might have. */
  readonly walked: ReadonlyArray<Walked>
  /** Transfers that ended so far. */
  readonly transfers: () => number
  /** Requests without an answer, or with 503 or 500. */
  readonly doubts: () => number
  /** Answers of 500: excused only by a database that crashed. */
  readonly broken: () => number
  /** Milliseconds of every command that was answered at the first request. */
  readonly took: ReadonlyArray<number>
  /** The domain's whole walk, from its owner to the next and so on around; `place`: its first ending in `endings`. */
  readonly walk: (
    owners: ReadonlyArray<Owner>,
    first: number,
    domainId: string,
    place: number,
  ) => Effect.Effect<void>
}

/**
 * `up` are the running processes to choose from, at each request; `width` is the limit of concurrent requests; no
 * transfer begins once it is `over`.
 */
export const walks = (up: ReadonlySet<ProgramInstance>, width: number, over: () => boolean): ProcessWalks => {
  const gate = Semaphore.makeUnsafe(width)
  const walked: Array<Walked> = []
  const took: Array<number> = []
  let [transfers, doubts, broken, turn] = [0, 0, 0, 0]

  /** Null: the outcome is unknown. */
  const ask = Effect.fnUntraced(function* (who: Owner, method: string, path: string, body?: object) {
    const some = [...up]
    const instance = some[turn++ % some.length]!
    const begun = performance.now()
    const reply: Reply | null = yield* Effect.suspend(() => who.at(instance).call(method, path, { body })).pipe(
      Effect.timeout("20 seconds"),
      // The connection of a process that was killed.
      Effect.catchCause(() => Effect.succeed(null)),
    )
    if (reply?.status === 500) broken++
    if (reply !== null && reply.status !== 503 && reply.status !== 500) {
      if (method !== "GET") took.push(performance.now() - begun)
      return reply
    }
    doubts++
    yield* Effect.sleep("100 millis")
    return null
  }, (asking) => gate.withPermit(asking))

  /**
   * The answer, or null where the request was refused with `code` after an unanswered attempt, which then had
   * succeeded. The same follows a slow attempt: its actor's process died after the commit, and before the service was
   * called instead the short window was over and the transfer had moved on by itself.
   */
  const insist = Effect.fnUntraced(function* (who: Owner, method: string, path: string, code: string, body?: object) {
    for (let doubtful = false;; doubtful = true) {
      const begun = performance.now()
      const reply = yield* ask(who, method, path, body)
      if (reply === null) continue
      const late = performance.now() - begun >= windowMillis
      if ((doubtful || late) && reply.status === 409 && reply.json.code === code) return null
      assert.strictEqual(reply.status, 200, `${method} ${path} ${reply.text}`)
      return reply.json
    }
  })

  const outgoing = Effect.fnUntraced(function* (who: Owner) {
    for (;;) {
      const reply = yield* ask(who, "GET", "/v1/domain-transfers/outgoing")
      if (reply?.status === 200) return reply.json as ReadonlyArray<Record<string, string>>
    }
  })

  const offer = Effect.fnUntraced(function* (from: Owner, to: Owner, domainId: string) {
    const body = { target_email: addressOf(to.id), note: `${transfers}` }
    const made = yield* insist(from, "POST", `/v1/domains/${domainId}/transfer`, "transfer_active", body)
    if (made !== null) return String(made.id)
    const live = (yield* outgoing(from)).find(({ domain_id, status }) => domain_id === domainId && status === "pending")
    return live!["id"]!
  })

  const completed = Effect.fnUntraced(function* (from: Owner, to: Owner, id: string) {
    yield* insist(to, "POST", `/v1/domain-transfers/by-id/${id}/accept`, "not_pending", {})
    for (;;) {
      // The window, and up to five seconds for its timer.
      yield* Effect.sleep("4 seconds")
      const seen = (yield* outgoing(from)).find((transfer) => transfer["id"] === id)
      if (seen!["status"] === "completed") return
      assert.strictEqual(seen!["status"], "accepted")
    }
  })

  const walk: ProcessWalks["walk"] = Effect.fnUntraced(function* (owners, first, domainId, place) {
    let at = first
    const ended: Array<Ending> = []
    for (let step = 0; step < endings.length && !over(); step++) {
      const ending = endings[(place + step) % endings.length]!
      const [from, to] = [owners[at % owners.length]!, owners[(at + 1) % owners.length]!]
      const id = yield* offer(from, to, domainId)
      if (ending === "cancelled") yield* insist(from, "DELETE", `/v1/domain-transfers/${id}`, "not_pending")
      if (ending === "declined") yield* insist(to, "POST", `/v1/domain-transfers/${id}/decline`, "not_pending")
      if (ending === "completed") {
        yield* completed(from, to, id)
        at++
      }
      transfers++
      ended.push(ending)
    }
    if (ended.length > 0) walked.push({ domainId, owner: owners[at % owners.length]!.id, ended })
  })

  return { walked, took, transfers: () => transfers, doubts: () => doubts, broken: () => broken, walk }
}
