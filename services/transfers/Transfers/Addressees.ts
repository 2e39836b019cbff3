/**
 * The mails of an event, and their recipients. The stop mail goes to the owner and, if another account, to the initiator.
 */
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { DkimKey } from "../DkimKeys.ts"
import type { NewMail } from "../../platform/mail/Mails.ts"
import type { TransferEvent } from "./TransferCommands.ts"
import type { TransferState } from "./TransferState.ts"

type To = "owner" | "initiator" | "recipient"

/** Circumstances of an event that its mails and notices mention. */
export interface Circumstances {
  /** Accounts whose SMTP credentials for the domain were revoked. */
  readonly revoked: ReadonlySet<AccountId>
  /** Accounts that get no mail and no notice, because another event of the same transaction notifies them. */
  readonly silent: ReadonlySet<AccountId>
  /** The domain's new DKIM key, or null. */
  readonly key: DkimKey | null
  /** Parties of the live transfer that a forced one ended. */
  readonly ended: ReadonlySet<AccountId>
}

export const plain: Circumstances = { revoked: new Set(), silent: new Set(), key: null, ended: new Set() }

/** The accounts that an event is notified to. An administrator who forces a transfer is not a party. */
export const parties = ({ forced, initiatedBy, sourceUserId, targetUserId }: TransferState): ReadonlySet<AccountId> =>
  new Set([sourceUserId, ...(forced ? [] : [initiatedBy]), targetUserId])

type MailPlan = ReadonlyArray<readonly [string, ReadonlyArray<To>]>

const planOf = (event: TransferEvent, state: TransferState): MailPlan => {
  const { forced, initiatedBy, rotateDkim, sourceUserId, status } = state
  const source: ReadonlyArray<To> = forced || initiatedBy === sourceUserId ? ["owner"] : ["owner", "initiator"]
  const both: ReadonlyArray<To> = [...source, "recipient"]
  const plans: Readonly<Record<TransferEvent, MailPlan>> = {
    // The domain's owner is informed at once of an offer that another account made.
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
  return plans[event]
}

const accountOf = (to: To, { initiatedBy, sourceUserId, targetUserId }: TransferState) =>
  to === "owner" ? sourceUserId : to === "initiator" ? initiatedBy : targetUserId

/** Accounts that get a mail with the content of their notice. */
export const mailedBy = (event: TransferEvent, state: TransferState): ReadonlySet<AccountId> =>
  new Set(planOf(event, state).flatMap(([, all]) => all.map((to) => accountOf(to, state))))

/** The accounts whose addresses the mails of an event need. */
export const addressed = (event: TransferEvent, state: TransferState): ReadonlyArray<AccountId> =>
  planOf(event, state).flatMap(([, all]) => all.flatMap((to) => to === "recipient" ? [] : [accountOf(to, state)]))

/** The mails of an event. `addressOf`: an account's address; the recipient's is the address of the offer. */
export const mailsOf = (
  event: TransferEvent,
  state: TransferState,
  { ended, revoked, silent }: Circumstances,
  addressOf: (accountId: AccountId) => string | null | undefined,
): ReadonlyArray<NewMail> =>
  planOf(event, state).flatMap(([kind, all]) =>
    all.flatMap((to): ReadonlyArray<NewMail> => {
      const accountId = accountOf(to, state)
      const recipient = to === "recipient" ? state.targetEmail : addressOf(accountId)
      if (recipient === undefined || recipient === null || silent.has(accountId)) return []
      const args = {
        to,
        event,
        ...((to === "recipient" ? revoked.size > 0 : revoked.has(accountId)) ? { revoked: "yes" } : {}),
        ...(ended.has(accountId) ? { ended: "yes" } : {}),
      }
      return [{ kind: `transfer.${kind}`, subjectId: state.id, recipient, args }]
    })
  )
