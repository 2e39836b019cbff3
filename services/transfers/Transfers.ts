/**
 * Domain transfers (docs/api/mail.md): a verified domain moves between accounts by an offer, its acceptance and a
 * safety window, or at once by a platform administrator.
 *
 * The domain's row is the aggregate. A command loads the facts for its decision, reads the clock, calls the pure
 * transition function, and writes state, fences, timers, audit, messages, notices and mails in one statement
 * (docs/transfers.md). Actors only avoid races; the results are the same when any number of processes call this service
 * directly.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { AccountId, DomainId, TransferId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type {
  Accept,
  AcceptCommand,
  Cancel,
  CancelCommand,
  Decline,
  DeclineCommand,
  FailureOf,
  Force,
  ForceCommand,
  Initiate,
  InitiateCommand,
  Stop,
  StopCommand,
} from "../../schemas/mail/DomainCommands.ts"
import type {
  AcceptEligibility,
  DomainDkim,
  DomainTransfer,
  DomainTransferPage,
  PlatformTransferPage,
} from "../../schemas/mail/Transfer.ts"
import type { DependencyUnavailable, InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import type { TransferNotFound } from "../../schemas/problems/TransferProblems.ts"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { type DkimAlgorithm, type DkimRecord, keyOf, recordOf } from "./DkimKeys.ts"
import { TransitionWriter } from "./Transfers/TransitionWriter.ts"
import { domainKeys } from "./Transfers/DomainKeys.ts"
import { FeatureFlag } from "./Transfers/FeatureFlag.ts"
import { handshake } from "./Transfers/PartyCommands.ts"
import { lists } from "./Transfers/TransferLists.ts"
import { initiating } from "./Transfers/Initiate.ts"
import { forcing } from "./Transfers/InitiateAndForce.ts"
import { rows } from "./Transfers/Rows.ts"
import { settling } from "./Transfers/DueTransition.ts"
import { type Settled, settlingMany } from "./Transfers/DueTransitions.ts"
import { type TransferFilter, type TransferPage, transferPages } from "./Transfers/PagedTransfers.ts"
import { transferReading } from "./Transfers/TransferReading.ts"
import { type TimerKind, type TransferState, viewOf } from "./Transfers/TransferState.ts"

export type { Settled } from "./Transfers/DueTransitions.ts"
export type { TransferState } from "./Transfers/TransferState.ts"

/** The timer kinds of this domain; a due timer calls `settle`. */
export const transferTimers: ReadonlyArray<TimerKind> = ["transfer.expire", "transfer.complete"]

export interface TransfersConfig {
  /** DOMAIN_TRANSFERS_ENABLED. While it is off, no transfer completes and there are no routes. */
  readonly enabled: boolean
  readonly requestWindowMillis: number
  readonly safetyWindowMillis: number
  /** Initiations per minute and account. */
  readonly initiateLimit: number
  readonly dkim: DkimAlgorithm
}

/** The transfer behind a mailed link. */
export interface Preview {
  readonly transfer: DomainTransfer
  /** The link was used before. */
  readonly used: boolean
  /** The stop link ended the transfer. */
  readonly stopped: boolean
  /** The DNS record of the transfer's new DKIM key, or null. */
  readonly record: DkimRecord | null
}

/** A transfer by its id, or by the token of a mailed link. */
export type Named = readonly [by: "id", id: TransferId] | readonly [by: "accept" | "stop", token: string]

export interface Located {
  readonly transferId: TransferId
  readonly domainId: DomainId
}

/** Number of transfers whose domain is cached. */
const mostLocated = 10_000

/** A command answers with the transfer as it is after it. */
type Answer<Failure> = Effect.Effect<DomainTransfer, Failure>

export class Transfers extends Context.Service<Transfers, {
  /** Offers a domain. Counts against the account's limit if the caller may offer this domain, also if it is refused. */
  readonly initiate: (command: InitiateCommand) => Answer<FailureOf<typeof Initiate>>
  readonly accept: (command: AcceptCommand) => Answer<FailureOf<typeof Accept>>
  readonly decline: (command: DeclineCommand) => Answer<FailureOf<typeof Decline>>
  readonly cancel: (command: CancelCommand) => Answer<FailureOf<typeof Cancel>>
  readonly stop: (command: StopCommand) => Answer<FailureOf<typeof Stop>>
  /** Moves a domain at once. The caller of this method checks that the account may do so. */
  readonly force: (command: ForceCommand) => Answer<FailureOf<typeof Force>>
  /** JSON text of an array of `DomainTransfer`, newest first. */
  readonly incoming: (credential: Credential["Service"]) => Effect.Effect<string, InvalidCredentials>
  readonly outgoing: (credential: Credential["Service"]) => Effect.Effect<string, InvalidCredentials>
  /** The account's received transfers that have ended, most recent first. */
  readonly received: (accountId: AccountId, page: TransferPage) => Effect.Effect<DomainTransferPage>
  /** The transfers of all accounts, most recent first. The caller of this method checks that the account may. */
  readonly all: (filter: TransferFilter, page: TransferPage) => Effect.Effect<PlatformTransferPage>
  /** The DKIM keys of a domain, for its owner, its workspace's members and the recipient of an accepted transfer. */
  readonly dkim: (
    accountId: AccountId,
    domainId: DomainId,
  ) => Effect.Effect<DomainDkim, TransferNotFound | DependencyUnavailable>
  /**
   * A transfer, for the owner that it began with, its initiator, its recipient, and members of the workspace that the
   * domain was in. A transition that is due happens first.
   */
  readonly read: (
    accountId: AccountId,
    transferId: TransferId,
  ) => Effect.Effect<DomainTransfer, TransferNotFound | DependencyUnavailable>
  readonly eligibility: (accountId: AccountId) => Effect.Effect<AcceptEligibility, InvalidCredentials>
  /** The ids of a transfer and of its domain, to address the domain's actor; null if there is no such transfer. */
  readonly locate: (...named: Named) => Effect.Effect<Located | null>
  /** A transfer by its id or by a mailed token, as it is stored, or null. Checks no permission. */
  readonly find: (...named: Named) => Effect.Effect<TransferState | null>
  /**
   * The transfer behind a mailed link, after its due transition was written. Null if no transfer has this token. Checks
   * no permission: the caller decides what to show.
   */
  readonly preview: (
    link: "accept" | "stop",
    token: string,
  ) => Effect.Effect<Preview | null, DependencyUnavailable>
  /**
   * Writes the due transition of a transfer (expiry or completion); returns whether it changed. Called by its timer.
   */
  readonly settle: (transferId: TransferId) => Effect.Effect<boolean, DependencyUnavailable>
  /**
   * `settle` for many transfers in a few statements. Returns an outcome for each; an `unmoved` one is not due, or was
   * left for a later call. A transfer that fails does not affect the others.
   */
  readonly settleMany: (transferIds: ReadonlyArray<TransferId>) => Effect.Effect<ReadonlyMap<string, Settled>>
}>()("bailiwick/services/transfers/Transfers") {
  static readonly layer = (config: TransfersConfig) =>
    Layer.effect(Transfers, make(config)).pipe(
      Layer.provide(FeatureFlag.layer(config.enabled)),
      Layer.provide(TransitionWriter.layer),
    )
}

const make = Effect.fnUntraced(function* (config: TransfersConfig) {
  const { reads } = yield* Database
  const tokens = yield* OneTimeTokens
  const settle = yield* settling(config.dkim)
  const settleMany = yield* settlingMany(settle)
  const { byId, byToken } = rows(reads)
  const find = Effect.fnUntraced(function* (...[by, text]: Named) {
    const found = yield* (by === "id" ? byId(text) : byToken(by, tokens.hash(text))).pipe(Effect.orDie)
    return found?.state ?? null
  })
  const preview = Effect.fn("Transfers.preview")(function* (link: "accept" | "stop", token: string) {
    const found = yield* find(link, token)
    if (found === null) return null
    yield* settle.ifDue(found)
    const state = (yield* find("id", found.id)) ?? found
    const used = link === "accept" ? state.acceptUsed : state.stopUsed
    const key = state.rotateDkim ? yield* keyOf(reads, state).pipe(Effect.orDie) : null
    return {
      transfer: viewOf(state, yield* Clock.currentTimeMillis),
      used,
      stopped: state.stopUsed,
      record: key && recordOf(state.domainName, key),
    }
  })
  // A transfer's domain never changes, so the cache is never stale; it only selects the actor for a command.
  const domains = new BoundedMap<TransferId, DomainId>(mostLocated)
  yield* counted("domains of transfers", () => domains.size)
  const locate = Effect.fnUntraced(function* (...named: Named) {
    const [by, text] = named
    const known = by === "id" ? domains.get(text) : undefined
    if (by === "id" && known !== undefined) return { transferId: text, domainId: known }
    const found = yield* find(...named)
    if (found === null) return null
    domains.set(found.id, found.domainId)
    return { transferId: found.id, domainId: found.domainId }
  })
  const initiate = yield* initiating(settle, config)
  return Transfers.of({
    initiate: (command) =>
      Effect.tap(initiate(command), ({ id }) => Effect.sync(() => domains.set(id, command.domainId))),
    locate,
    force: yield* forcing(settle, config),
    ...(yield* handshake(settle, config.safetyWindowMillis, config.dkim)),
    ...(yield* lists(settleMany)),
    ...(yield* transferPages),
    dkim: yield* domainKeys(settle),
    read: yield* transferReading(settle),
    find,
    preview,
    settle: settle.transfer,
    settleMany,
  })
})
