/** What may be asked of a transfer, with the facts that the answer needs, and what comes of it. */
import type { Blocker } from "../../../schemas/mail/Transfer.ts"
import type { TransferState } from "./TransferState.ts"

/** A domain as it stands now; null where it is unknown or removed. */
export interface DomainFacts {
  readonly id: string
  readonly name: string
  readonly accountId: string
  readonly workspaceId: string
  readonly verified: boolean
}

export interface Target {
  readonly id: string
  readonly email: string
}

export interface Opening {
  readonly id: string
  readonly domain: DomainFacts
  /** The owner account's name. */
  readonly sourceLabel: string
  readonly callerId: string
  /** The active account of the address, where there is one. */
  readonly target: Target | null
  readonly requestWindow: number
}

/** What the caller is to a transfer: its recipient, one who may act for its source, one who may only look, or nobody. */
export type Party = "recipient" | "source" | "onlooker" | "stranger"

export interface Initiate extends Opening {
  readonly _tag: "Initiate"
  readonly note: string | null
  /** The domain has a live transfer. */
  readonly active: Pick<TransferState, "id" | "status"> | null
  readonly broadcasts: ReadonlyArray<Blocker>
  readonly scheduledEmails: ReadonlyArray<Blocker>
}

export interface Force extends Opening {
  readonly _tag: "Force"
  readonly rotateDkim: boolean
  /** The recipient's workspaces, the oldest first. */
  readonly workspaces: ReadonlyArray<string>
}

export interface Accept {
  readonly _tag: "Accept"
  readonly byToken: boolean
  readonly caller: Target
  /** What the caller chose, any text; null: the oldest. */
  readonly orgId: string | null
  readonly rotateDkim: boolean
  readonly workspaces: ReadonlyArray<string>
  /** One more domain fits the caller's plan. */
  readonly room: boolean
  readonly domain: DomainFacts | null
  readonly safetyWindow: number
}

/** The clock has come: the timer says so, or a command that was first. */
export interface Tick {
  readonly _tag: "Tick"
  readonly domain: DomainFacts | null
  readonly recipientActive: boolean
  readonly workspaces: ReadonlyArray<string>
}

export type TransferCommand =
  | Accept
  | Tick
  | { readonly _tag: "Decline"; readonly party: Party }
  | { readonly _tag: "Cancel"; readonly party: Party }
  | { readonly _tag: "Stop" }
  /** Its domain went another way: by an administrator's force, or as the directory says to another owner, or away. */
  | { readonly _tag: "End"; readonly by: "force" | "directory" }
  /** Nobody could stop it for a while. */
  | { readonly _tag: "Extend"; readonly until: number }

/** Why a transfer is in its state, for those who are told. */
export type TransferEvent =
  | "initiated"
  | "accepted"
  | "declined"
  | "cancelled"
  | "stopped"
  | "expired"
  | "completed"
  | "forced"
  /** The domain's owner changed elsewhere, or it went away. */
  | "overtaken"
  /** An administrator of the platform moved the domain by force. */
  | "superseded"
  /** The recipient can no longer take it. */
  | "undeliverable"
  | "extended"

export interface Transition {
  readonly state: TransferState
  /** Empty where nothing changes: then nothing is written. */
  readonly events: ReadonlyArray<TransferEvent>
}
