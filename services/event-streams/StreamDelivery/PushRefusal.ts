/** Why a receiver refused a message (RFC 8935, 2.4; RFC 8936, 2.6): the code and a line for the operator. */

/** The codes of both RFCs and of the Shared Signals Framework. */
const codes: ReadonlySet<string> = new Set([
  "invalid_request",
  "invalid_key",
  "invalid_issuer",
  "invalid_audience",
  "authentication_failed",
  "access_denied",
  "invalid_state",
])

/** Code points of the receiver's text that are kept. */
const longest = 300

export interface PushRefusal {
  /** One of the known codes, or `other`. */
  readonly code: string
  /** For the operator: one line without control characters. */
  readonly said: string
}

const lineOf = (text: string): string =>
  [...text.replace(/[\p{Cc}\p{Cf}\p{Cs}\s]+/gu, " ").trim()].slice(0, longest).join("")

export const refusalOf = (
  { description, err }: { readonly err: string; readonly description?: string | undefined },
): PushRefusal => ({
  code: codes.has(err) ? err : "other",
  said: lineOf(description === undefined || description === "" ? err : `${err}: ${description}`),
})

/** The refusal in a body of RFC 8935, 2.4; null for any other. */
export const refusalIn = (body: Uint8Array | null): PushRefusal | null => {
  if (body === null) return null
  try {
    const said: unknown = JSON.parse(new TextDecoder().decode(body))
    if (typeof said !== "object" || said === null || !("err" in said) || typeof said.err !== "string") return null
    const description = "description" in said && typeof said.description === "string" ? said.description : ""
    return refusalOf({ err: said.err, description })
  } catch {
    return null
  }
}
