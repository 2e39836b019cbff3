/** Who gets which mail. The stop email goes to the owner and, where different, the initiator. */
import type { NewMail } from "../../platform/Mails.ts"
import type { TransferEvent } from "./commands.ts"
import type { TransferState } from "./state.ts"

type To = "owner" | "initiator" | "recipient"

const lettersOf = (event: TransferEvent, { forced, initiatedBy, sourceUserId, status }: TransferState) => {
  const source: ReadonlyArray<To> = forced || initiatedBy === sourceUserId ? ["owner"] : ["owner", "initiator"]
  const both: ReadonlyArray<To> = [...source, "recipient"]
  const letters: Readonly<Record<TransferEvent, ReadonlyArray<readonly [string, ReadonlyArray<To>]>>> = {
    // Who owns a domain hears at once of an offer that somebody else made.
    initiated: [
      ["invitation", ["recipient"]],
      ...(initiatedBy === sourceUserId ? [] : [["offered", ["owner"]] as const]),
    ],
    accepted: [["stop", source]],
    declined: [["declined", source]],
    cancelled: [["cancelled", ["recipient"]]],
    stopped: [["reversed", both]],
    expired: [["expired", both]],
    completed: [["completed", both]],
    forced: [["completed", both]],
    overtaken: [[status === "cancelled" ? "cancelled" : "reversed", both]],
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
  addressOf: (accountId: string) => string | null | undefined,
): ReadonlyArray<NewMail> =>
  lettersOf(event, state).flatMap(([kind, all]) =>
    all.flatMap((to): ReadonlyArray<NewMail> => {
      const recipient = to === "recipient" ? state.targetEmail : addressOf(accountOf(to, state))
      return recipient === undefined || recipient === null
        ? []
        : [{ kind: `transfer.${kind}`, subjectId: state.id, recipient, args: { to, event } }]
    })
  )
