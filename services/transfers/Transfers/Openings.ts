/** The commands that begin a transfer: initiate, with its limit, and an administrator's force. */
import { Clock, Effect, Result } from "effect"
import { Forbidden, InvalidCredentials, RateLimited } from "../../../schemas/problems/Floor.ts"
import type { WorkspaceRole } from "../../../schemas/mail/Account.ts"
import { TransferNotFound } from "../../../schemas/problems/Transfers.ts"
import { Database } from "../../platform/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { heldMeanwhile } from "../../platform/Installation.ts"
import { sameAddress } from "../../platform/MailAddress.ts"
import { OneShotTokens } from "../../platform/OneShotTokens.ts"
import { Outbox } from "../../platform/Outbox.ts"
import { RateLimits } from "../../platform/RateLimits.ts"
import { Vault } from "../../platform/Vault.ts"
import { type DkimAlgorithm, keepPair, makePair } from "../DkimKeys.ts"
import { parties } from "./addressees.ts"
import { Changes, type Telling } from "./Changes.ts"
import type { Opening, Transition } from "./commands.ts"
import { move, revoke, revokedFrom } from "./Completion.ts"
import { type Account, type Domain, facts } from "./Facts.ts"
import { locked } from "./Locked.ts"
import { rows } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./Settle.ts"
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

const minute = 60_000

export const openings = Effect.fnUntraced(function* (settle: Settling, config: OpeningsConfig) {
  const { reads, sql } = yield* Database
  const changes = yield* Changes
  const ids = yield* Ids
  const limits = yield* RateLimits
  const tokens = yield* OneShotTokens
  const moving = { sql, outbox: yield* Outbox }
  const vault = yield* Vault
  const { admission } = facts(reads)
  const { lockAccounts, lockRole, lockWorkspaces, opening } = facts(sql)
  const { lockDomain } = locked(sql)
  const { madeBy } = rows(sql)
  const run = transact(sql)

  /** 404 for what is not the caller's to see, 403 for who may only look. */
  const mayInitiate = (accountId: string, domain: Domain, role: WorkspaceRole | null) =>
    accountId === domain.accountId || role === "owner" || role === "admin"
      ? Effect.void
      : Effect.fail(role === null ? new TransferNotFound() : new Forbidden())

  /** What is to be locked, as it stands now, unless the clock has moved on and nobody has written it down. */
  const look = Effect.fnUntraced(function* (domainId: string, email: string) {
    const before = (yield* opening(domainId, email)) ?? (yield* new TransferNotFound())
    if (before.dueAt !== null && before.dueAt <= (yield* Clock.currentTimeMillis)) return yield* new Overdue()
    return before
  })

  /** The target, where the address is still that of the account that was locked. */
  const targetOf = (accounts: ReadonlyMap<string, Account>, id: string | null, email: string) => {
    const account = id === null ? undefined : accounts.get(id)
    if (account === undefined) return Effect.succeed(null)
    return account.active && sameAddress(account.email, email) ? Effect.succeed(account) : Effect.fail(new Conflict())
  }

  /** The fence as it was read says, too, that nothing began or ended meanwhile that this statement would not see. */
  const lockUnchanged = Effect.fnUntraced(function* (before: Domain) {
    const { blockers, domain, held, live } = yield* lockDomain(before.id)
    if (domain === null) return yield* new TransferNotFound()
    if (domain.revision !== before.revision) return yield* new Conflict()
    const now = yield* Clock.currentTimeMillis
    if (live !== null && isDue(live.state, now)) return yield* new Overdue()
    return { blockers, domain, held, live, now }
  })

  /** Where this command was here before, its answer; else why it is refused. */
  const orDone = Effect.fnUntraced(function* <P>(domainId: string, commandId: string, now: number, problem: P) {
    const done = yield* madeBy(domainId, commandId)
    return done === null ? yield* Effect.fail(problem) : viewOf(done.state, now)
  })

  const admit = Effect.fn("Transfers.admit")(function* (accountId: string, domainId: string) {
    const seen = admission(accountId, domainId).pipe(Effect.orDie)
    let domain = yield* seen
    if (domain !== null && domain.dueAt !== null && domain.dueAt <= (yield* Clock.currentTimeMillis)) {
      yield* settle.domain(domainId)
      domain = yield* seen
    }
    if (domain === null) return yield* new TransferNotFound()
    yield* mayInitiate(accountId, domain, domain.role)
    const key = `transfers.initiate:${accountId}`
    const limit = config.initiateLimit
    const taken = yield* limits.take({ key, limit, windowMillis: minute }).pipe(Effect.orDie)
    if (taken.allowed) return
    return yield* new RateLimited({ retry_after: taken.retryAfterSeconds, limit, window_seconds: minute / 1_000 })
  })

  type Looked = Effect.Success<ReturnType<typeof look>>
  type Unchanged = Effect.Success<ReturnType<typeof lockUnchanged>>

  /**
   * Locks what such a command reads, in the global order, decides and writes. `seats` are locked between the accounts and
   * the domain. Whatever its answer would be without, nothing begins while the installation is held: whose the domain is,
   * and what becomes of it, may have been decided in the lost time.
   */
  const begin = Effect.fnUntraced(function* <S, E1, P, E2>(
    step: "initiate" | "force",
    { accountId, commandId, domainId, targetEmail }: Omit<InitiateCommand, "note">,
    { decide, seats, strength, write }: {
      readonly strength: "share" | "no key update"
      readonly seats: (before: Looked) => Effect.Effect<S, E1>
      readonly decide: (opening: Opening, seats: S, found: Unchanged) => Result.Result<Transition, P>
      /** Gives what is to be told. */
      readonly write: (after: Transition, found: Unchanged) => Effect.Effect<ReadonlyArray<Telling>, E2>
    },
  ) {
    const id = yield* ids.next
    return yield* settledFirst(settle.domain(domainId), () =>
      run(
        step,
        Effect.gen(function* () {
          const before = yield* look(domainId, targetEmail)
          const { targetId } = before
          const accounts = yield* lockAccounts(
            [accountId, before.accountId, ...(targetId === null ? [] : [targetId])],
            strength,
          )
          if (!accounts.get(accountId)?.active) return yield* new InvalidCredentials()
          const seated = yield* seats(before)
          const found = yield* lockUnchanged(before)
          const { domain, now } = found
          const opening = {
            id,
            domain,
            sourceLabel: accounts.get(domain.accountId)?.name ?? "",
            callerId: accountId,
            target: yield* targetOf(accounts, targetId, targetEmail),
            requestWindow: config.requestWindowMillis,
          }
          const after = decide(opening, seated, found)
          if (Result.isFailure(after)) return yield* orDone(domainId, commandId, now, after.failure)
          if (found.held) return yield* heldMeanwhile()
          yield* changes.tell(yield* write(after.success, found))
          return viewOf(after.success.state, now)
        }),
      ))
  })

  const initiate = Effect.fn("Transfers.initiate")((command: InitiateCommand) => {
    const { accountId, commandId, note } = command
    const actor = `account:${accountId}`
    return begin("initiate", command, {
      strength: "share",
      seats: Effect.fnUntraced(function* (before) {
        // Whoever owns it needs no seat.
        const role = accountId === before.accountId ? null : yield* lockRole(accountId, before.workspaceId)
        yield* mayInitiate(accountId, before, role)
      }),
      decide: (opening, _, { blockers, live, now }) =>
        decideInitiate({ _tag: "Initiate", ...opening, note, active: live?.state ?? null, ...blockers }, now),
      write: (after, { domain: { revision }, now }) => {
        const accept = tokens.issue("transfer-accept", after.state.id)
        return changes.write({ before: null, after, actor, commandId, revision, tokens: { accept }, now })
      },
    })
  })

  const force = Effect.fn("Transfers.force")(function* (command: ForceCommand) {
    const { accountId, commandId, rotateDkim } = command
    const pair = rotateDkim ? yield* makePair(config.dkim) : null
    return yield* begin("force", command, {
      strength: "no key update",
      seats: ({ targetId }) => targetId === null ? Effect.succeed([]) : lockWorkspaces(targetId),
      decide: (opening, workspaces, { now }) => decideForce({ _tag: "Force", ...opening, rotateDkim, workspaces }, now),
      write: Effect.fnUntraced(function* (after, { domain, live, now }) {
        const written = { actor: `account:${accountId}`, commandId, now }
        const ended = live === null ? [] : yield* changes.write({
          ...written,
          before: live,
          after: Result.getOrThrow(transition(live.state, { _tag: "End", by: "force" }, now)),
          revision: domain.revision,
          // The sides of the force are told of both at once, by its own letters and notices.
          circumstances: { silent: parties(after.state) },
        })
        const revoked = yield* revoke(sql, [after.state], now)
        const { domainId, id: transferId, targetUserId } = after.state
        // It asks for no limit, and counts against it: an accept that was decided before this begins anew.
        yield* sql`update accounts set arrivals = arrivals + 1 where id = ${targetUserId}::uuid`
        if (pair !== null) yield* keepPair(sql, vault, pair, { domainId, transferId, now })
        const circumstances = {
          key: pair,
          revoked: revokedFrom(revoked, after.state),
          ...(live === null ? {} : { ended: parties(live.state) }),
        }
        const revision = domain.revision + (live === null ? 0n : 1n)
        const done = yield* changes.write({ ...written, before: null, after, revision, circumstances })
        yield* move(moving, [{ state: after.state, key: pair }], revoked, now)
        return [...ended, ...done]
      }),
    })
  })

  return { admit, initiate, force }
})
