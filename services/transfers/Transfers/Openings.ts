/** An administrator's force, which moves a domain at once, with its credentials and keys: a transaction under locks. */
import { Clock, Effect, Result } from "effect"
import { InvalidCredentials } from "../../../schemas/problems/Floor.ts"
import { TransferNotFound } from "../../../schemas/problems/Transfers.ts"
import { Database } from "../../platform/database/Database.ts"
import { Ids } from "../../platform/Ids.ts"
import { heldMeanwhile } from "../../platform/database/Installation.ts"
import { sameAddress } from "../../platform/mail/MailAddress.ts"
import { Outbox } from "../../platform/messaging/Outbox.ts"
import { Vault } from "../../platform/security/Vault.ts"
import { type DkimAlgorithm, type DkimPair, keepPair, makePair } from "../DkimKeys.ts"
import { parties } from "./Addressees.ts"
import { Changes } from "./Changes.ts"
import type { Transition } from "./TransferCommands.ts"
import { move, revoke, revokedFrom } from "./Completion.ts"
import { type Account, type Domain, facts } from "./Facts.ts"
import type { InitiateCommand } from "./Initiate.ts"
import { locked } from "./Locked.ts"
import { rows } from "./Rows.ts"
import { Overdue, settledFirst, type Settling } from "./Settle.ts"
import { isDue, viewOf } from "./TransferState.ts"
import { Conflict, transact } from "./Transact.ts"
import { force as decideForce, transition } from "./TransferTransition.ts"

export interface ForceCommand extends Omit<InitiateCommand, "note"> {
  readonly rotateDkim: boolean
}

export interface ForceConfig {
  readonly requestWindowMillis: number
  readonly dkim: DkimAlgorithm
}

export const forcing = Effect.fnUntraced(function* (settle: Settling, config: ForceConfig) {
  const { sql } = yield* Database
  const changes = yield* Changes
  const ids = yield* Ids
  const moving = { sql, outbox: yield* Outbox }
  const vault = yield* Vault
  const { lockAccounts, lockWorkspaces, opening } = facts(sql)
  const { lockDomain } = locked(sql)
  const { madeBy } = rows(sql)
  const run = transact(sql)

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
    const { domain, held, live } = yield* lockDomain(before.id)
    if (domain === null) return yield* new TransferNotFound()
    if (domain.revision !== before.revision) return yield* new Conflict()
    const now = yield* Clock.currentTimeMillis
    if (live !== null && isDue(live.state, now)) return yield* new Overdue()
    return { domain, held, live, now }
  })
  type Unchanged = Effect.Success<ReturnType<typeof lockUnchanged>>

  /** Ends the live transfer, moves the domain; gives what is to be told. */
  const write = Effect.fnUntraced(function* (
    { accountId, commandId }: ForceCommand,
    after: Transition,
    { domain, live, now }: Unchanged,
    pair: DkimPair | null,
  ) {
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
  })

  /**
   * Locks what the command reads, in the global order, decides and writes. Nothing begins while the installation is held:
   * whose the domain is, and what becomes of it, may have been decided in the lost time.
   */
  const once = Effect.fnUntraced(function* (command: ForceCommand, id: string, pair: DkimPair | null) {
    const { accountId, commandId, domainId, rotateDkim, targetEmail } = command
    const before = yield* look(domainId, targetEmail)
    const { targetId } = before
    const accounts = yield* lockAccounts(
      [accountId, before.accountId, ...(targetId === null ? [] : [targetId])],
      "no key update",
    )
    if (!accounts.get(accountId)?.active) return yield* new InvalidCredentials()
    const workspaces = targetId === null ? [] : yield* lockWorkspaces(targetId)
    const found = yield* lockUnchanged(before)
    const { domain, now } = found
    const after = decideForce({
      _tag: "Force",
      ...{ id, domain, rotateDkim, workspaces, callerId: accountId },
      sourceLabel: accounts.get(domain.accountId)?.name ?? "",
      target: yield* targetOf(accounts, targetId, targetEmail),
      requestWindow: config.requestWindowMillis,
    }, now)
    if (Result.isFailure(after)) {
      // Where this command was here before, its own transfer may be what refuses it.
      const done = yield* madeBy(domainId, commandId)
      return done === null ? yield* Effect.fail(after.failure) : viewOf(done.state, now)
    }
    if (found.held) return yield* heldMeanwhile()
    yield* changes.tell(yield* write(command, after.success, found, pair))
    return viewOf(after.success.state, now)
  })

  return Effect.fn("Transfers.force")(function* (command: ForceCommand) {
    const pair = command.rotateDkim ? yield* makePair(config.dkim) : null
    const id = yield* ids.next
    return yield* settledFirst(settle.domain(command.domainId), () => run("force", once(command, id, pair)))
  })
})
