/** The reasons for which a message is refused: each step of the verification has a name. */

/** Error codes of RFC 8935 (section 2.4), and `invalid_state` of the Shared Signals Framework (section 8.1.4.1). */
export type RefusalCode =
  | "invalid_request"
  | "invalid_key"
  | "invalid_issuer"
  | "invalid_audience"
  | "authentication_failed"
  | "invalid_state"

/** The step of the verification that failed. */
export type RefusalStep =
  | "size"
  | "compact"
  | "header"
  | "typ"
  | "alg"
  | "kid"
  | "key"
  | "signature"
  | "claims"
  | "iss"
  | "aud"
  | "sub"
  | "exp"
  | "events"
  | "iat"
  | "jti"
  | "sub_id"
  | "lifecycle"
  | "digest"
  | "project"
  | "state"
  | "stream"
  | "verification"
  | "note"
  | "origin"
  | "witnesses"
  | "inclusion"
  | "consistency"
  | "pack"

const codes: Readonly<Partial<Record<RefusalStep, RefusalCode>>> = {
  kid: "invalid_key",
  key: "invalid_key",
  signature: "authentication_failed",
  iss: "invalid_issuer",
  aud: "invalid_audience",
  verification: "invalid_state",
}

/** A message failed verification and must not be applied. */
export class Refusal extends Error {
  override readonly name = "Refusal"
  readonly code: RefusalCode
  readonly step: RefusalStep

  constructor(step: RefusalStep, message: string) {
    super(`${step}: ${message}`)
    this.step = step
    this.code = codes[step] ?? "invalid_request"
  }
}

/** The next event does not follow the last one that was applied: only a snapshot can continue. */
export class Gap extends Error {
  override readonly name = "Gap"
}
