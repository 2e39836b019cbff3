/** The commands on a transfer with the facts that their decisions need, and the events that follow. */
import type { AccountId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import type { TransferState } from "./TransferState.ts"

/** The facts about a domain that decisions need. */
export interface DomainFacts {
  readonly id: DomainId
  readonly name: string
  readonly accountId: AccountId
  readonly workspaceId: WorkspaceId
  readonly verified: boolean
}

export interface Target {
  readonly id: AccountId
  readonly email: string
}

export interface Opening {
  readonly id: TransferId
  readonly domain: DomainFacts
  /** The owner account's name. */
  readonly sourceLabel: string
  readonly callerId: AccountId
  /** The active account with the address, or null. */
  readonly target: Target | null
  readonly requestWindow: number
}

/** The caller's relation to a transfer: recipient, may act for the source, may only see it, or none. */
export type Party = "recipient" | "source" | "onlooker" | "stranger"

export interface Initiate extends Opening {
  readonly _tag: "Initiate"
  readonly note: string | null
  /** The domain's live transfer, or null. */
  readonly active: Pick<TransferState, "id" | "status"> | null
  readonly broadcasts: ReadonlyArray<Blocker>
  readonly scheduledEmails: ReadonlyArray<Blocker>
}

export interface Force extends Opening {
  readonly _tag: "Force"
  readonly rotateDkim: boolean
  /** The recipient's workspaces, the oldest first. */
  readonly workspaces: ReadonlyArray<WorkspaceId>
}

export interface Accept {
  readonly _tag: "Accept"
  readonly byToken: boolean
  readonly caller: Target
  /** The chosen workspace, any text; null: the oldest one. */
  readonly orgId: WorkspaceId | null
  readonly rotateDkim: boolean
  readonly workspaces: ReadonlyArray<WorkspaceId>
  /** Whether the caller's plan allows one more domain. */
  readonly room: boolean
  readonly domain: DomainFacts | null
  readonly safetyWindow: number
}

/** A transition is due by the clock; from the timer or from a command that came before it. */
export interface Tick {
  readonly _tag: "Tick"
  readonly domain: DomainFacts | null
  readonly recipientActive: boolean
  readonly workspaces: ReadonlyArray<WorkspaceId>
}

export type TransferCommand =
  | Accept
  | Tick
  | { readonly _tag: "Decline"; readonly party: Party }
  | { readonly _tag: "Cancel"; readonly party: Party }
  | { readonly _tag: "Stop" }
  /** An administrator forced a transfer of the domain, or the directory removed it or gave it another owner. */
  | { readonly _tag: "End"; readonly by: "force" | "directory" }
  /** Extends the safety window, after a time in which the transfer could not be stopped. */
  | { readonly _tag: "Extend"; readonly until: number }

/** Why a transfer changed its state; it selects mails, notices and audit records. */
export type TransferEvent =
  | "initiated"
  | "accepted"
  | "declined"
  | "cancelled"
  | "stopped"
  | "expired"
  | "completed"
  | "forced"
  /** The directory gave the domain another owner, or removed it. */
  | "overtaken"
  /** An administrator of the platform moved the domain by force. */
  | "superseded"
  /** The recipient can no longer receive the domain. */
  | "undeliverable"
  | "extended"

export interface Transition {
  readonly state: TransferState
  /** Empty if nothing changes; then nothing is written. */
  readonly events: ReadonlyArray<TransferEvent>
}
