/** The commands that begin a transfer: initiate, with its limit, and an administrator's force. */
import { Clock, Data, Effect, Result } from "effect"
import { DependencyUnavailable, Forbidden, InvalidCredentials, RateLimited } from "../../../schemas/problems/Floor.ts"
import { TransferNotFound } from "../../../schemas/problems/Transfers.ts"
import { Database } from "../../platform/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { sameAddress } from "../../platform/MailAddress.ts"
import { OneShotTokens } from "../../platform/OneShotTokens.ts"
import { Outbox } from "../../platform/Outbox.ts"
import { RateLimits } from "../../platform/RateLimits.ts"
import { Vault } from "../../platform/Vault.ts"
import { type DkimAlgorithm, makePair } from "../DkimKeys.ts"
import { Changes } from "./Changes.ts"
import { move } from "./Completion.ts"
import { type Account, type Domain, facts } from "./Facts.ts"
import { rows } from "./Rows.ts"
import type { Settling } from "./Settle.ts"
import { isDue, viewOf } from "./state.ts"
import { Conflict, transact } from "./Transact.ts"
import { force as decideForce, initiate as decideInitiate, transition } from "./transition.ts"

export interface InitiateCommand {
  readonly commandId: string
  readonly accountId: string
  readonly domainId: string
  readonly targetEmail: string
  readonly note: string | null
}

export interface ForceCommand extends Omit<InitiateCommand, "note"> {
  readonly rotateDkim: boolean
}

export interface OpeningsConfig {
  readonly requestWindowMillis: number
  /** A minute and account. */
  readonly initiateLimit: number
  readonly dkim: DkimAlgorithm
}

/** The clock came between the look at the live transfer and the lock on it. */
class Overdue extends Data.TaggedError("Overdue") {}

const minute = 60_000

export const openings = Effect.fnUntraced(function* (settle: Settling, config: OpeningsConfig) {
  const { sql } = yield* Database
  const changes = yield* Changes
  const ids = yield* Ids
  const limits = yield* RateLimits
  const tokens = yield* OneShotTokens
  const moving = { sql, outbox: yield* Outbox, vault: yield* Vault }
  const known = facts(sql)
  const { lockLiveOf, madeBy } = rows(sql)
  const run = transact(sql)

  const settled = <A, E, R>(
    domainId: string,
    command: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, Exclude<E, Overdue> | DependencyUnavailable, R> =>
    Effect.andThen(settle.domain(domainId), command).pipe(
      Effect.retry({ times: 2, while: (error) => error instanceof Overdue }),
      Effect.mapError((error): Exclude<E, Overdue> | DependencyUnavailable =>
        error instanceof Overdue ? new DependencyUnavailable() : error as Exclude<E, Overdue>
      ),
    )

  /** 404 for what is not the caller's to see, 403 for who may only look. */
  const mayInitiate = Effect.fnUntraced(function* (accountId: string, domain: Domain) {
    const role = yield* known.lockRole(accountId, domain.workspaceId)
    if (accountId === domain.accountId || role === "owner" || role === "admin") return
    return yield* role === null ? new TransferNotFound() : new Forbidden()
  })

  /** The target, where the address is still that of the account that was locked. */
  const targetOf = (accounts: ReadonlyMap<string, Account>, id: string | null, email: string) => {
    const account = id === null ? undefined : accounts.get(id)
    if (account === undefined) return Effect.succeed(null)
    return account.active && sameAddress(account.email, email) ? Effect.succeed(account) : Effect.fail(new Conflict())
  }

  const lockUnchanged = Effect.fnUntraced(function* (before: Domain) {
    const domain = yield* known.lockDomain(before.id)
    if (domain === null) return yield* new TransferNotFound()
    if (domain.accountId !== before.accountId || domain.workspaceId !== before.workspaceId) return yield* new Conflict()
    const live = yield* lockLiveOf(domain.id)
    const now = yield* Clock.currentTimeMillis
    if (live !== null && isDue(live.state, now)) return yield* new Overdue()
    return { domain, live, now }
  })

  /** Where this command was here before, its answer; else why it is refused. */
  const orDone = Effect.fnUntraced(function* <P>(domainId: string, commandId: string, now: number, problem: P) {
    const done = yield* madeBy(domainId, commandId)
    return done === null ? yield* Effect.fail(problem) : viewOf(done.state, now)
  })

  const admit = Effect.fn("Transfers.admit")(function* (accountId: string, domainId: string) {
    yield* settle.domain(domainId)
    const domain = yield* known.domain(domainId).pipe(Effect.orDie)
    if (domain === null) return yield* new TransferNotFound()
    yield* mayInitiate(accountId, domain).pipe(Effect.catchTag("SqlError", Effect.die))
    const key = `transfers.initiate:${accountId}`
    const limit = config.initiateLimit
    const taken = yield* limits.take({ key, limit, windowMillis: minute }).pipe(Effect.orDie)
    if (taken.allowed) return
    return yield* new RateLimited({ retry_after: taken.retryAfterSeconds, limit, window_seconds: minute / 1_000 })
  })

  const initiate = Effect.fn("Transfers.initiate")(function* (command: InitiateCommand) {
    const { accountId, commandId, domainId, note, targetEmail } = command
    const id = yield* ids.next
    return yield* settled(
      domainId,
      run(
        "initiate",
        Effect.gen(function* () {
          const before = yield* known.domain(domainId)
          if (before === null) return yield* new TransferNotFound()
          const targetId = yield* known.activeByEmail(targetEmail)
          const accounts = yield* known.lockAccounts(
            [accountId, before.accountId, ...(targetId === null ? [] : [targetId])],
            "share",
          )
          if (!accounts.get(accountId)?.active) return yield* new InvalidCredentials()
          yield* mayInitiate(accountId, before)
          const { domain, live, now } = yield* lockUnchanged(before)
          const after = decideInitiate({
            _tag: "Initiate",
            id,
            domain,
            sourceLabel: accounts.get(domain.accountId)?.name ?? "",
            callerId: accountId,
            target: yield* targetOf(accounts, targetId, targetEmail),
            requestWindow: config.requestWindowMillis,
            note,
            active: live !== null,
            ...(yield* known.blockers(domainId)),
          }, now)
          if (Result.isFailure(after)) return yield* orDone(domainId, commandId, now, after.failure)
          const notices = yield* changes.write({
            before: null,
            after: after.success,
            actor: `account:${accountId}`,
            commandId,
            revision: domain.revision,
            tokens: { accept: tokens.issue("transfer-accept", id) },
            now,
          })
          yield* changes.tell(notices)
          return viewOf(after.success.state, now)
        }),
      ),
    )
  })

  const force = Effect.fn("Transfers.force")(function* (command: ForceCommand) {
    const { accountId, commandId, domainId, rotateDkim, targetEmail } = command
    const id = yield* ids.next
    const pair = rotateDkim ? yield* makePair(config.dkim) : null
    return yield* settled(
      domainId,
      run(
        "force",
        Effect.gen(function* () {
          const before = yield* known.domain(domainId)
          if (before === null) return yield* new TransferNotFound()
          const targetId = yield* known.activeByEmail(targetEmail)
          const accounts = yield* known.lockAccounts(
            [accountId, before.accountId, ...(targetId === null ? [] : [targetId])],
            "no key update",
          )
          if (!accounts.get(accountId)?.active) return yield* new InvalidCredentials()
          const workspaces = targetId === null ? [] : yield* known.lockWorkspaces(targetId)
          const { domain, live, now } = yield* lockUnchanged(before)
          const after = decideForce({
            _tag: "Force",
            id,
            domain,
            sourceLabel: accounts.get(domain.accountId)?.name ?? "",
            callerId: accountId,
            target: yield* targetOf(accounts, targetId, targetEmail),
            requestWindow: config.requestWindowMillis,
            rotateDkim,
            workspaces,
          }, now)
          if (Result.isFailure(after)) return yield* orDone(domainId, commandId, now, after.failure)
          const written = { actor: `account:${accountId}`, commandId, now }
          const ended = live === null ? [] : yield* changes.write({
            ...written,
            before: live,
            after: Result.getOrThrow(transition(live.state, { _tag: "End" }, now)),
            revision: domain.revision,
          })
          const revision = domain.revision + (live === null ? 0n : 1n)
          const done = yield* changes.write({ ...written, before: null, after: after.success, revision })
          yield* move(moving, [{ state: after.success.state, pair }], now)
          yield* changes.tell([...ended, ...done])
          return viewOf(after.success.state, now)
        }),
      ),
    )
  })

  return { admit, initiate, force }
})
