/** Texts for links whose transfer can no longer be accepted or stopped by them. */
import type { Preview } from "../../../services/transfers/Transfers.ts"
import { when } from "./TransferPage.ts"

export interface TransferCopy {
  readonly title: string
  readonly text: string
}

const offer = ({ stopped, transfer, used }: Preview): TransferCopy => {
  const { domain_name: name, expires_at: expiry, cooloff_until: until, status } = transfer
  const title = used ? "This link was used already" : "This offer has ended"
  switch (status) {
    case "accepted":
      return {
        title: used ? title : "This offer was accepted already",
        text: `The transfer of ${name} was accepted and takes effect on ${
          when(until ?? expiry)
        }, unless it is stopped before.`,
      }
    case "completed":
      return { title, text: `The transfer of ${name} is complete: there is nothing left to accept.` }
    case "reversed":
      return {
        title,
        text: stopped
          ? `The transfer of ${name} was accepted and then stopped: the domain stays where it was.`
          : `The transfer of ${name} was accepted and ended before it took effect: the domain changed meanwhile, or the ` +
            "recipient could no longer take it.",
      }
    case "declined":
      return { title, text: `The offer of ${name} was declined: it can no longer be accepted.` }
    case "expired":
      return { title, text: `The offer of ${name} expired on ${when(expiry)}: it can no longer be accepted.` }
    default:
      return { title, text: `The offer of ${name} was cancelled: it can no longer be accepted.` }
  }
}

const stop = ({ transfer: { domain_name: name, completed_at: done, status }, used }: Preview): TransferCopy => {
  if (used) {
    return {
      title: "This link was used already",
      text: `The transfer of ${name} was stopped: the domain stays with its owner.`,
    }
  }
  return status === "completed"
    ? {
      title: "This transfer is complete",
      text: `The transfer of ${name} was completed${
        done === null ? "" : ` on ${when(done)}`
      }: it can no longer be stopped here.`,
    }
    : {
      title: "This transfer has ended",
      text: `The transfer of ${name} ended before it took effect: there is nothing left to stop.`,
    }
}

/** The text for a link that no longer works, with the API's code for the same; null while the link works. */
export const ended = (link: "accept" | "stop", preview: Preview): TransferCopy & { readonly code: string } | null => {
  const { transfer: { status }, used } = preview
  if (!used && status === (link === "accept" ? "pending" : "accepted")) return null
  if (link === "stop") return { ...stop(preview), code: "not_stoppable" }
  return { ...offer(preview), code: status === "expired" ? "expired" : "not_pending" }
}

/** Texts for refused acceptances that the state of the transfer does not explain. */
export const refused: Readonly<Record<string, TransferCopy>> = {
  org_access_lost: {
    title: "Choose another workspace",
    text: "Your account does not belong to the workspace that was chosen: open the link in your email again.",
  },
  domain_limit: {
    title: "Your plan has no room for another domain",
    text: "Nothing was accepted: remove a domain or change your plan, and open the link in your email again.",
  },
}
