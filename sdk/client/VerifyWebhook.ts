/** Verification of a webhook's request, by Web Crypto. */

/** The headers of a request, as Fetch or Node has them. */
export type RequestHeaders = Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** The arguments of `verifyWebhook`. */
export interface WebhookRequest {
  readonly headers: RequestHeaders
  /** The body as it arrived: parsed and written again it has other bytes. */
  readonly body: string | Uint8Array
  /** The webhook's secret, `whsec_…`; several while a rotation overlaps. */
  readonly secret: string | ReadonlyArray<string>
  /** By how many seconds the request's time may differ from now; 300 by default. */
  readonly tolerance?: number
  /**
   * Verifies `X-Webhook-Signature` alone: for a receiver that sees only this header. It signs no time, so a recorded
   * request stays valid for ever.
   */
  readonly untimed?: boolean
}

/** A request that is not from the installation, or not new. */
export class WebhookRefused extends Error {
  override readonly name = "WebhookRefused"
}

const utf8 = (text: string) => new TextEncoder().encode(text)

/** The bytes of base64 or of hexadecimal text; none where the text is neither. */
const bytesOf = (text: string, hex?: boolean) => {
  try {
    return hex
      ? Uint8Array.from(text.match(/../g) ?? [], (one) => parseInt(one, 16))
      : Uint8Array.from(atob(text), (one) => one.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

/**
 * Whether one of the signatures is the message's. `subtle.verify` compares in constant time. An empty key is
 * public, so it verifies nothing.
 */
const isSigned = async (key: BufferSource, signatures: ReadonlyArray<BufferSource>, message: BufferSource) => {
  if (!key.byteLength) return false
  const own = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"])
  for (const one of signatures) if (await crypto.subtle.verify("HMAC", own, one, message)) return true
  return false
}

/**
 * Verifies one request and gives its event; fails with `WebhookRefused`. The signature is that of Standard Webhooks 1.0
 * (`webhook-id`, `webhook-timestamp`, `webhook-signature`: HMAC-SHA256 of `id.timestamp.body`, keyed with the decoded
 * base64 of the secret; one for each secret while a rotation overlaps). With `untimed` it is `X-Webhook-Signature`: the
 * hexadecimal HMAC-SHA256 of the body, keyed with the whole secret.
 */
export const verifyWebhook = async <Event = WebhookEvent>(
  { body, headers, secret, tolerance = 300, untimed }: WebhookRequest,
): Promise<Event> => {
  const header = (name: string) =>
    String((headers instanceof Headers ? headers.get(name) : headers[name as keyof RequestHeaders]) ?? "")
  const bytes = Uint8Array.from(typeof body === "string" ? utf8(body) : body)
  const time = header("webhook-timestamp")
  if (!untimed && !(Math.abs(Date.now() / 1000 - Number(time)) <= tolerance)) {
    throw new WebhookRefused("The request's time is not now")
  }
  const signatures = untimed
    ? [bytesOf(header("x-webhook-signature"), true)]
    // More of them than secrets that overlap are work that a stranger asks for.
    : header("webhook-signature").split(" ", 8).flatMap((one) => one.startsWith("v1,") ? [bytesOf(one.slice(3))] : [])
  const message = untimed ? bytes : Uint8Array.from([...utf8(`${header("webhook-id")}.${time}.`), ...bytes])
  for (const one of [secret].flat() as Array<string>) {
    if (await isSigned(untimed ? utf8(one) : bytesOf(one.replace("whsec_", "")), signatures, message)) {
      return JSON.parse(new TextDecoder().decode(bytes))
    }
  }
  throw new WebhookRefused("The signature is missing, or of another secret or body")
}

/** The body of a webhook's request. */
export interface WebhookEvent {
  readonly event:
    | "email.sent"
    | "email.delivered"
    | "email.opened"
    | "email.clicked"
    | "email.bounced"
    | "email.failed"
    | "email.complained"
    | "email.unsubscribed"
  readonly email_id: string
  readonly recipient: string
  /** ISO 8601 in UTC. */
  readonly timestamp: string
  readonly metadata: Readonly<Record<string, unknown>> & {
    readonly subject: string | null
    readonly tag: string | null
  }
}
