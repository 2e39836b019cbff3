/** Why an exchange came to nothing. */
export type Reason =
  | "timeout"
  | "dns"
  | "connect"
  | "tls"
  | "blocked_address"
  | "reset"
  | "body"
  | "protocol"

/** What the stages before the request's first byte fail with; it passes through undici unchanged. */
export class Failure extends Error {
  readonly reason: Reason
  constructor(reason: Reason, cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
  }
}

const codeOf = (error: Error): string => "code" in error && typeof error.code === "string" ? error.code : ""

/** The verifier found no way from the certificate to an authority that it knows. */
export const isUntrusted = (error: Error): boolean =>
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
  ].includes(codeOf(error))

/** Names an error of the connection's making: lookup, TCP, TLS. */
export const connecting = (error: Error, protocol: string): Failure => {
  if (error instanceof Failure) return error
  if (codeOf(error) === "UND_ERR_CONNECT_TIMEOUT") return new Failure("timeout", error)
  const syscall = "syscall" in error ? error.syscall : undefined
  if (syscall === "getaddrinfo") return new Failure("dns", error)
  // Happy eyeballs gathers the refusals of several addresses in an AggregateError.
  const tcp = protocol === "http:" || syscall === "connect" || error instanceof AggregateError
  return new Failure(tcp ? "connect" : "tls", error)
}

/** Names an error of an exchange on a connection that stood; `answering`: the response's head had come. */
export const exchanging = (error: Error, answering: boolean): Reason => {
  if (error instanceof Failure) return error.reason
  if (answering) return "body"
  const code = codeOf(error)
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_DESTROYED"
    ? "reset"
    : "protocol"
}
