/** The outcome of a failed attempt over SMTP. */

/** The members of nodemailer's errors that are used here. */
export interface SmtpFault {
  readonly code?: string
  readonly command?: string
  readonly responseCode?: number
  readonly response?: string
}

const envelope = new Set(["MAIL FROM", "RCPT TO", "DATA"])

/**
 * `begun`: the server had asked for the message and some of it was sent. A refusal before the envelope (greeting, TLS,
 * credentials) is about this sender and not about the mail, so a 5xx there is tried again.
 */
export const verdict = (fault: SmtpFault, begun: boolean): "Later" | "Refused" | "Unknown" => {
  const answered = fault.responseCode !== undefined && fault.responseCode >= 400
  if (begun && !answered) return "Unknown"
  const ofTheMail = begun || envelope.has(fault.command ?? "")
  if (answered) return ofTheMail && fault.responseCode >= 500 && fault.responseCode !== 503 ? "Refused" : "Later"
  // Nodemailer itself found the envelope unfit, or the message larger than the server takes.
  return fault.code === "EENVELOPE" || fault.code === "EMESSAGE" ? "Refused" : "Later"
}

/** Step, code, reply code and enhanced status (RFC 3463); none of the server's words. */
export const reasonOf = ({ code, command, response, responseCode }: SmtpFault): string => {
  const status = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response ?? "")?.[1]
  return [code ?? "EUNKNOWN", command, responseCode || undefined, status].filter((part) => part !== undefined).join(" ")
}
