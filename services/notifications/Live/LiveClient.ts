/**
 * One client of the live stream of notifications: its position in an inbox. Polls and checks are made for all clients
 * at once. Ten thousand of these are in memory most of the time, so each holds only what it needs.
 */
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { PresentedAgain } from "../../authentication/StandingCredentials.ts"
import { StreamOutlet } from "../../platform/StreamOutlet.ts"
import type { Position } from "./Events.ts"

/** A client that is behind gets no more while so many bytes are unsent. */
const enough = 64 * 1024

/** The state that all outlets of a process share. */
export interface Outlets {
  readonly now: () => number
  /** Called once for each outlet that ended. */
  readonly left: (outlet: LiveClient) => void
}

export class LiveClient extends StreamOutlet {
  readonly accountId: AccountId
  readonly credential: PresentedAgain
  /** Null until the first poll: a client without a position begins at the newest. */
  epoch: string | null
  since: number
  /** The client gets the counts even if nothing has changed. */
  owed = true
  /** There are more changes than the last page held. */
  behind = false
  /** When the credential is to be checked again. */
  recheckAt: number
  readonly #all: Outlets

  constructor(
    all: Outlets,
    accountId: AccountId,
    credential: PresentedAgain,
    position: Position | null,
    recheckAt: number,
  ) {
    super(all.now)
    this.#all = all
    this.accountId = accountId
    this.credential = credential
    this.epoch = position?.epoch ?? null
    this.since = position?.version ?? 0
    this.recheckAt = recheckAt
  }

  protected left(): void {
    this.#all.left(this)
  }

  /** Whether to poll for this client without a wake-up signal. */
  get eager(): boolean {
    return this.owed || this.behind
  }

  /** Whether the client takes more events now. */
  get open(): boolean {
    return !this.ended && !(this.behind && this.unsent > enough)
  }
}
