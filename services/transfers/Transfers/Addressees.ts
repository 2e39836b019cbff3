/** Who gets which mail. The stop email goes to the owner and, where different, the initiator. */
import type { DkimKey } from "../DkimKeys.ts"
import type { NewMail } from "../../platform/mail/Mails.ts"
import type { TransferEvent } from "./TransferCommands.ts"
import type { TransferState } from "./TransferState.ts"

type To = "owner" | "initiator" | "recipient"

/** What came with an event, as its letters and notices tell it. */
export interface Circumstances {
  /** Accounts whose SMTP credentials for the domain were revoked. */
  readonly revoked: ReadonlySet<string>
  /** Accounts that are told by another event of the same transaction. */
  readonly silent: ReadonlySet<string>
  /** The domain's new DKIM key, where the event brings one. */
  readonly key: DkimKey | null
  /** Parties of the live transfer that a force ended. */
  readonly ended: ReadonlySet<string>
}

export const plain: Circumstances = { revoked: new Set(), silent: new Set(), key: null, ended: new Set() }

/** The accounts that are told of an event; an administrator that forces a transfer is neither side of it. */
export const parties = ({ forced, initiatedBy, sourceUserId, targetUserId }: TransferState): ReadonlySet<string> =>
  new Set([sourceUserId, ...(forced ? [] : [initiatedBy]), targetUserId])

type Letters = ReadonlyArray<readonly [string, ReadonlyArray<To>]>

const lettersOf = (event: TransferEvent, state: TransferState): Letters => {
  const { forced, initiatedBy, rotateDkim, sourceUserId, status } = state
  const source: ReadonlyArray<To> = forced || initiatedBy === sourceUserId ? ["owner"] : ["owner", "initiator"]
  const both: ReadonlyArray<To> = [...source, "recipient"]
  const letters: Readonly<Record<TransferEvent, Letters>> = {
    // Who owns a domain hears at once of an offer that somebody else made.
    initiated: [
      ["invitation", ["recipient"]],
      ...(initiatedBy === sourceUserId ? [] : [["offered", ["owner"]] as const]),
    ],
    accepted: [["stop", source], ...(rotateDkim ? [["key", ["recipient"]] as const] : [])],
    declined: [["declined", source]],
    cancelled: [["cancelled", ["recipient"]]],
    stopped: [["reversed", both]],
    expired: [["expired", both]],
    completed: [["completed", both]],
    forced: [["completed", both]],
    overtaken: [[status === "cancelled" ? "cancelled" : "reversed", both]],
    superseded: [[status === "cancelled" ? "cancelled" : "reversed", both]],
    undeliverable: [["reversed", both]],
    extended: [["stop", source]],
  }
  return letters[event]
}

const accountOf = (to: To, { initiatedBy, sourceUserId, targetUserId }: TransferState) =>
  to === "owner" ? sourceUserId : to === "initiator" ? initiatedBy : targetUserId

/** Accounts that a letter tells the same as their notice. */
export const mailedBy = (event: TransferEvent, state: TransferState): ReadonlySet<string> =>
  new Set(lettersOf(event, state).flatMap(([, all]) => all.map((to) => accountOf(to, state))))

/** The accounts whose addresses the mails of an event need. */
export const addressed = (event: TransferEvent, state: TransferState): ReadonlyArray<string> =>
  lettersOf(event, state).flatMap(([, all]) => all.flatMap((to) => to === "recipient" ? [] : [accountOf(to, state)]))

/** The mails of an event; `addressOf` an account. The recipient's is the one that the domain was offered to. */
export const mailsOf = (
  event: TransferEvent,
  state: TransferState,
  { ended, revoked, silent }: Circumstances,
  addressOf: (accountId: string) => string | null | undefined,
): ReadonlyArray<NewMail> =>
  lettersOf(event, state).flatMap(([kind, all]) =>
    all.flatMap((to): ReadonlyArray<NewMail> => {
      const accountId = accountOf(to, state)
      const recipient = to === "recipient" ? state.targetEmail : addressOf(accountId)
      if (recipient === undefined || recipient === null || silent.has(accountId)) return []
      const args = {
        ...{ to, event },
        ...((to === "recipient" ? revoked.size > 0 : revoked.has(accountId)) ? { revoked: "yes" } : {}),
        ...(ended.has(accountId) ? { ended: "yes" } : {}),
      }
      return [{ kind: `transfer.${kind}`, subjectId: state.id, recipient, args }]
    })
  )
