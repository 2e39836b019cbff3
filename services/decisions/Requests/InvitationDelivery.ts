/** The delivery status of an invitation's mail, in the API's words. */
import type { MailDelivery } from "../../../schemas/identity/RequestBodies.ts"
import { parse } from "../../platform/mail/MailAddress.ts"
import type { RequestRow } from "../../requests/RequestRows.ts"

export interface MailRow {
  readonly state: "pending" | "sent" | "failed" | "unknown" | "dropped"
}

const states = {
  pending: "queued",
  sent: "delivered",
  failed: "failed",
  unknown: "ambiguous",
  dropped: "failed",
} as const satisfies Record<MailRow["state"], MailDelivery["state"]>

export const recipientOf = ({ fields }: Pick<RequestRow, "fields">): string => String(fields["recipient"] ?? "")

/**
 * `failed` at once where the recipient is no address; `none` while no mail was added, or the mail is no longer kept.
 */
export const deliveryOf = (row: Pick<RequestRow, "fields" | "mail_id">, mail: MailRow | null): MailDelivery => ({
  state: mail !== null
    ? states[mail.state]
    : row.mail_id === null && parse(recipientOf(row)) === null
    ? "failed"
    : "none",
  message_id: row.mail_id,
})
