/**
 * Domain transfers (docs/api/mail.md): a verified domain moves between accounts by a handshake of two sides and a
 * safety window, or at once by a platform administrator.
 *
 * The domain's row is the aggregate. A command loads what its decision stands on, reads the clock, asks the pure transition
 * function, and writes state, fences, timers, audit, messages, notices and mails in one statement (docs/transfers.md).
 * Actors only spare races; called directly, from any number of processes, the answers are the same.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type { AcceptEligibility, DomainDkim, DomainTransfer } from "../../schemas/mail/Transfer.ts"
import type {
  DependencyUnavailable,
  Forbidden,
  InvalidCredentials,
  RateLimited,
} from "../../schemas/problems/HttpProblems.ts"
import type { Held } from "../../schemas/problems/IdentityProblems.ts"
import type * as Problems from "../../schemas/problems/TransferProblems.ts"
import { BoundedMap } from "../platform/BoundedMap.ts"
import { Database } from "../platform/database/Database.ts"
import { counted } from "../platform/MapSizes.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { type DkimAlgorithm, type DkimRecord, keyOf, recordOf } from "./DkimKeys.ts"
import { TransitionWriter } from "./Transfers/TransitionWriter.ts"
import { domainKeys } from "./Transfers/DomainKeys.ts"
import { FeatureFlag } from "./Transfers/FeatureFlag.ts"
import { type AcceptCommand, handshake, type PartyCommand, type StopCommand } from "./Transfers/PartyCommands.ts"
import { lists } from "./Transfers/TransferLists.ts"
import { type InitiateCommand, initiating } from "./Transfers/Initiate.ts"
import { type ForceCommand, forcing } from "./Transfers/InitiateAndForce.ts"
import { rows } from "./Transfers/Rows.ts"
import { settling } from "./Transfers/DueTransition.ts"
import { type Settled, settlingMany } from "./Transfers/DueTransitions.ts"
import { type TimerKind, type TransferState, viewOf } from "./Transfers/TransferState.ts"

export type { AcceptCommand, PartyCommand, StopCommand } from "./Transfers/PartyCommands.ts"
export type { InitiateCommand } from "./Transfers/Initiate.ts"
export type { ForceCommand } from "./Transfers/InitiateAndForce.ts"
export type { Settled } from "./Transfers/DueTransitions.ts"
export type { TransferState } from "./Transfers/TransferState.ts"

/** The timers that this domain has: `settle` is what they fire. */
export const transferTimers: ReadonlyArray<TimerKind> = ["transfer.expire", "transfer.complete"]

export interface TransfersConfig {
  /** DOMAIN_TRANSFERS_ENABLED. Off: nothing completes, and no route leads here. */
  readonly enabled: boolean
  readonly requestWindowMillis: number
  readonly safetyWindowMillis: number
  /** Initiations a minute and account. */
  readonly initiateLimit: number
  readonly dkim: DkimAlgorithm
}

/** What a mailed link is about. */
export interface Preview {
  readonly transfer: DomainTransfer
  /** The link did already what it is for. */
  readonly used: boolean
  /** The stop link ended the transfer, and nothing else did. */
  readonly stopped: boolean
  /** The record of the DKIM key that the transfer brings. */
  readonly record: DkimRecord | null
}

export interface Located {
  readonly transferId: string
  readonly domainId: string
}

/** Transfers whose domain is remembered; beyond that it is read again. */
const mostLocated = 10_000

/** What may befall any command beside its own problems. */
type Failing<P> = P | DependencyUnavailable
type ByAccount<P> = Failing<P | InvalidCredentials | Problems.TransferNotFound>

export class Transfers extends Context.Service<Transfers, {
  /** Counts one against the account's limit, where the domain is the caller's to offer, whatever becomes of it. */
  readonly initiate: (command: InitiateCommand) => Effect.Effect<
    DomainTransfer,
    ByAccount<
      | Forbidden
      | RateLimited
      | Problems.DomainNotVerified
      | Problems.TargetNotFound
      | Problems.SelfTransfer
      | Problems.TransferActive
      | Problems.BroadcastsInFlight
      | Problems.ScheduledEmails
      | Held
    >
  >
  readonly accept: (command: AcceptCommand) => Effect.Effect<
    DomainTransfer,
    ByAccount<
      | Problems.WrongRecipient
      | Problems.TransferExpired
      | Problems.NotPending
      | Problems.OrgAccessLost
      | Problems.DomainLimit
      | Held
    >
  >
  readonly decline: (
    command: PartyCommand,
  ) => Effect.Effect<DomainTransfer, ByAccount<Problems.WrongRecipient | Problems.NotPending>>
  readonly cancel: (command: PartyCommand) => Effect.Effect<DomainTransfer, ByAccount<Forbidden | Problems.NotPending>>
  readonly stop: (
    command: StopCommand,
  ) => Effect.Effect<DomainTransfer, Failing<Problems.TransferNotFound | Problems.NotStoppable>>
  /** Who may do so is the caller's to know. */
  readonly force: (
    command: ForceCommand,
  ) => Effect.Effect<
    DomainTransfer,
    ByAccount<Problems.TargetNotFound | Problems.SelfTransfer | Problems.OrgAccessLost | Held>
  >
  /** JSON text of an array of `DomainTransfer`, newest first. */
  readonly incoming: (credential: Credential["Service"]) => Effect.Effect<string, InvalidCredentials>
  readonly outgoing: (credential: Credential["Service"]) => Effect.Effect<string, InvalidCredentials>
  /** The DKIM keys of a domain, for its owner, its workspace's members and the recipient of an accepted transfer. */
  readonly dkim: (
    accountId: string,
    domainId: string,
  ) => Effect.Effect<DomainDkim, Failing<Problems.TransferNotFound>>
  readonly eligibility: (accountId: string) => Effect.Effect<AcceptEligibility, InvalidCredentials>
  /** The domain of a transfer and its id, for whoever sends a command to the domain; null where there is no such transfer. */
  readonly locate: (by: "id" | "accept" | "stop", text: string) => Effect.Effect<Located | null>
  /** A transfer by its id, or by the text of a mailed link, as it is stored; null where there is none. Asks no rights. */
  readonly find: (by: "id" | "accept" | "stop", text: string) => Effect.Effect<TransferState | null>
  /**
   * What a mailed link is about, as it is now: what the clock decided is settled first. Null where no transfer has such
   * a token. Asks no rights: who shows it decides what of it.
   */
  readonly preview: (
    link: "accept" | "stop",
    token: string,
  ) => Effect.Effect<Preview | null, DependencyUnavailable>
  /** Writes down what the clock decided of a transfer; gives whether that changed it. What a timer calls. */
  readonly settle: (transferId: string) => Effect.Effect<boolean, DependencyUnavailable>
  /**
   * The same of many at once, which spares most of the work of each. Gives what became of each; what is `unmoved` is
   * either not due or had no room in this call, and may be asked for again. One that fails does not hold up another.
   */
  readonly settleMany: (transferIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Settled>>
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
  const find = Effect.fnUntraced(function* (by: "id" | "accept" | "stop", text: string) {
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
      ...{ used, stopped: state.stopUsed, record: key && recordOf(state.domainName, key) },
    }
  })
  // A transfer's domain never changes, so this is never out of date; it decides nothing but where a command goes.
  const domains = new BoundedMap<string, string>(mostLocated)
  yield* counted("domains of transfers", () => domains.size)
  const locate = Effect.fnUntraced(function* (by: "id" | "accept" | "stop", text: string) {
    const known = by === "id" ? domains.get(text) : undefined
    if (known !== undefined) return { transferId: text, domainId: known }
    const found = yield* find(by, text)
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
    dkim: yield* domainKeys(settle),
    find,
    preview,
    settle: settle.transfer,
    settleMany,
  })
})
