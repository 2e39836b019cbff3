/** Offers a domain: one load, one decision, one write, within the account's limit of initiations. */
import { Array, Clock, Effect, Result } from "effect"
import { type AccountId, TransferId } from "../../../schemas/BrandedIds.ts"
import type { InitiateCommand } from "../../../schemas/mail/DomainCommands.ts"
import { Forbidden, InvalidCredentials, RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { TransferNotFound } from "../../../schemas/problems/TransferProblems.ts"
import { Database } from "../../platform/database/Database.ts"
import { faultPoint } from "../../platform/Failpoints.ts"
import { repeated, writeFenced } from "../../platform/database/FencedWrite.ts"
import { Ids } from "../../platform/Ids.ts"
import { heldMeanwhile, whileOpen } from "../../platform/database/Installation.ts"
import { OneTimeTokens } from "../../platform/security/OneTimeTokens.ts"
import { decisionOf, type RateDecision, RateLimits, taking } from "../../platform/security/RateLimits.ts"
import { TransitionWriter } from "./TransitionWriter.ts"
import type { Transition } from "./TransferCommands.ts"
import { standing } from "./Load.ts"
import { loadForInitiate } from "./LoadForInitiate.ts"
import { rows } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./DueTransition.ts"
import { isDue, viewOf } from "./TransferState.ts"
import { receiptOf } from "./TransferReceipt.ts"
import { initiate as decideInitiate } from "./TransferTransition.ts"

export interface InitiateConfig {
  readonly requestWindowMillis: number
  /** Initiations per minute and account. */
  readonly initiateLimit: number
}

/** One attempt: the id of the transfer that it makes, and whether due transitions were written before it. */
interface Attempt {
  readonly id: TransferId
  readonly now: number
  readonly settled: boolean
}

const minute = 60_000

/**
 * Problems that do not count against the limit: the check was not reached, the limit was exceeded, or the outcome is
 * unknown.
 */
const uncounted = new Set(["not_found", "forbidden", "invalid_credentials", "rate_limited", "dependency_unavailable"])

export const initiating = Effect.fnUntraced(function* (settle: Settling, config: InitiateConfig) {
  const { reads, sql } = yield* Database
  const changes = yield* TransitionWriter
  const ids = yield* Ids
  const limits = yield* RateLimits
  const tokens = yield* OneTimeTokens
  const forInitiate = loadForInitiate(reads)
  const { madeBy } = rows(reads)

  const limitOf = (accountId: AccountId) => ({
    key: `transfers.initiate:${accountId}`,
    limit: config.initiateLimit,
    windowMillis: minute,
  })

  const beyond = ({ retryAfterSeconds }: RateDecision) =>
    new RateLimited({
      retry_after: retryAfterSeconds,
      limit: config.initiateLimit,
      window_seconds: minute / 1_000,
    })

  const load = Effect.fnUntraced(function* ({ accountId, domainId, targetEmail }: InitiateCommand) {
    const loaded = yield* forInitiate(domainId, accountId, targetEmail, limitOf(accountId))
    const caller = loaded.people.get(accountId)
    if (!caller?.active) return yield* new InvalidCredentials()
    return { ...loaded, caller }
  })
  type Loaded = Effect.Success<ReturnType<typeof load>>

  /** The new transfer. The checks are in the documented order of problems. */
  const decide = Effect.fnUntraced(function* (loaded: Loaded, command: InitiateCommand, { id, now, settled }: Attempt) {
    const { blockers, domain, live, people, seat, targetId } = loaded
    if (domain === null) return yield* new TransferNotFound()
    const due = live !== null && isDue(live.state, now)
    // The due transition may give the caller the domain: without it, a 404 would be about the owner before.
    if (due && !settled) return yield* new Overdue()
    // 404 if the caller may not see the domain, 403 if the caller may only see it.
    const owns = domain.accountId === command.accountId
    if (!owns && seat === null) return yield* new TransferNotFound()
    if (!owns && seat!.role === "member") return yield* new Forbidden()
    if (due) return yield* new Overdue()
    const rate = decisionOf(limitOf(command.accountId), loaded.taken, now)
    if (!rate.allowed) return yield* beyond(rate)
    const target = targetId === null ? null : people.get(targetId)!
    const after = decideInitiate({
      _tag: "Initiate",
      id,
      domain,
      sourceLabel: people.get(domain.accountId)?.name ?? "",
      callerId: command.accountId,
      target: target && { id: target.id, email: target.email ?? "" },
      requestWindow: config.requestWindowMillis,
      note: command.note,
      active: live?.state ?? null,
      ...blockers,
    }, now)
    if (Result.isFailure(after)) return yield* Effect.fail(after.failure)
    if (loaded.installationHeld) return yield* heldMeanwhile()
    return after.success
  })

  const write = Effect.fnUntraced(function* (loaded: Loaded, command: InitiateCommand, after: Transition, now: number) {
    const { accountId, commandId } = command
    const { sourceUserId, targetUserId } = after.state
    const { fences, gather } = changes.fenced({
      before: null,
      after,
      actor: `account:${accountId}`,
      commandId,
      now,
      revision: loaded.revision,
      reach: loaded.reach,
      tokens: { accept: tokens.issue("transfer-accept", after.state.id) },
    })
    const accounts = [accountId, sourceUserId, targetUserId].flatMap((id) => loaded.people.get(id) ?? [])
    // The owner needs no seat in the workspace.
    const seats = accountId === sourceUserId ? [] : [loaded.seat!]
    const all = [
      ...standing(sql, { accounts, seats }),
      whileOpen(sql),
      ...fences,
      taking(sql, limitOf(accountId), now),
      ...receiptOf(sql, command.receipt, after, now),
    ]
    if (!Array.isArrayNonEmpty(all)) return
    yield* writeFenced(sql, all, Effect.andThen(gather, faultPoint("transfer.initiate.written")))
    yield* faultPoint("transfer.initiate.committed")
  })

  const once = Effect.fnUntraced(function* (command: InitiateCommand, id: TransferId, settled: boolean) {
    const loaded = yield* load(command)
    const now = yield* Clock.currentTimeMillis
    const after = yield* decide(loaded, command, { id, now, settled }).pipe(
      // If this command succeeded before, its own transfer may now be the reason for the refusal.
      Effect.catch((problem) =>
        Effect.flatMap(
          madeBy(command.domainId, command.commandId),
          (done) => done === null ? Effect.fail(problem) : Effect.succeed(done),
        )
      ),
    )
    if ("events" in after) yield* write(loaded, command, after, now)
    return viewOf(after.state, now)
  })

  /** Fails with the problem and counts it against the limit, since the write that counts was not sent. */
  const counted = <P extends { readonly code: string }>(accountId: AccountId, problem: P) =>
    uncounted.has(problem.code) ? Effect.fail(problem) : Effect.flatMap(
      Effect.orDie(limits.take(limitOf(accountId))),
      (taken): Effect.Effect<never, P | RateLimited> => Effect.fail(taken.allowed ? problem : beyond(taken)),
    )

  return Effect.fn("Transfers.initiate")(function* (command: InitiateCommand) {
    const { accountId, domainId } = command
    const id = TransferId.make(yield* ids.next)
    return yield* settledFirst(
      settle.domain(domainId),
      (settled) => repeated({ turn: domainId, finds: true }, once(command, id, settled)),
    ).pipe(Effect.catch((problem) => counted(accountId, problem)))
  })
})
