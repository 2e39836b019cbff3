/** Why an exchange failed. */
export type Reason =
  | "timeout"
  | "dns"
  | "connect"
  | "tls"
  | "blocked_address"
  | "reset"
  | "body"
  | "protocol"

/** The error of the stages before the request's first byte: lookup, connect, TLS. undici passes it on unchanged. */
export class Failure extends Error {
  readonly reason: Reason
  constructor(reason: Reason, cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
  }
}

const codeOf = (error: Error): string => "code" in error && typeof error.code === "string" ? error.code : ""

/** Whether the TLS error means that no known authority issued the certificate. */
export const isUntrusted = (error: Error): boolean =>
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
  ].includes(codeOf(error))

/** Classifies an error of connecting: lookup, TCP or TLS. */
export const connecting = (error: Error, protocol: string): Failure => {
  if (error instanceof Failure) return error
  if (codeOf(error) === "UND_ERR_CONNECT_TIMEOUT") return new Failure("timeout", error)
  const syscall = "syscall" in error ? error.syscall : undefined
  if (syscall === "getaddrinfo") return new Failure("dns", error)
  // Happy eyeballs gathers the refusals of several addresses in an AggregateError.
  const tcp = protocol === "http:" || syscall === "connect" || error instanceof AggregateError
  return new Failure(tcp ? "connect" : "tls", error)
}

/** Classifies an error of an exchange on an open connection; `headRead`: the response's head was read before. */
export const exchanging = (error: Error, headRead: boolean): Reason => {
  if (error instanceof Failure) return error.reason
  if (headRead) return "body"
  const code = codeOf(error)
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_DESTROYED"
    ? "reset"
    : "protocol"
}
