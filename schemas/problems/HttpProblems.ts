/** Problems that any request can meet, whatever the endpoint (docs/api/mail.md). */
import { Schema } from "effect"
import { Problem } from "./Problem.ts"

export class MalformedRequest
  extends Problem<MalformedRequest>()("MalformedRequest", "malformed_request", 400, "Malformed request") {}

export class InvalidCredentials
  extends Problem<InvalidCredentials>()("InvalidCredentials", "invalid_credentials", 401, "Invalid credentials") {}

export class Forbidden extends Problem<Forbidden>()("Forbidden", "forbidden", 403, "Forbidden") {}

export class CsrfRejected
  extends Problem<CsrfRejected>()("CsrfRejected", "csrf_rejected", 403, "Cross-site request rejected") {}

/** `CONSOLE=read`: nothing is changed by a console session. */
export class ConsoleReadOnly extends Problem<ConsoleReadOnly>()(
  "ConsoleReadOnly",
  "console_read_only",
  403,
  "The console may only read",
) {}

export class NotFound extends Problem<NotFound>()("NotFound", "not_found", 404, "Not found") {}

export class MethodNotAllowed
  extends Problem<MethodNotAllowed>()("MethodNotAllowed", "method_not_allowed", 405, "Method not allowed") {}

export class NotAcceptable extends Problem<NotAcceptable>()("NotAcceptable", "not_acceptable", 406, "Not acceptable") {}

/** The body had not arrived when its connection was needed for other callers; nothing was done. */
export class RequestTimeout
  extends Problem<RequestTimeout>()("RequestTimeout", "request_timeout", 408, "Request timeout") {}

export class BodyTooLarge extends Problem<BodyTooLarge>()("BodyTooLarge", "body_too_large", 413, "Body too large") {}

export class UnsupportedMediaType extends Problem<UnsupportedMediaType>()(
  "UnsupportedMediaType",
  "unsupported_media_type",
  415,
  "Unsupported media type",
) {}

export class MisdirectedRequest
  extends Problem<MisdirectedRequest>()("MisdirectedRequest", "misdirected_request", 421, "Misdirected request") {}

/**
 * `retry_after` in whole seconds; the edge repeats it as `Retry-After` and `RateLimit`, and `limit` requests in
 * `window_seconds` as `RateLimit-Policy`.
 */
export class RateLimited extends Problem<RateLimited>()("RateLimited", "rate_limited", 429, "Too many requests", {
  retry_after: Schema.Int,
  limit: Schema.optionalKey(Schema.Int),
  window_seconds: Schema.optionalKey(Schema.Int),
}) {}

export class HeadersTooLarge
  extends Problem<HeadersTooLarge>()("HeadersTooLarge", "headers_too_large", 431, "Request headers too large") {}

export class Internal extends Problem<Internal>()("Internal", "internal", 500, "Internal error") {}

export class DependencyUnavailable extends Problem<DependencyUnavailable>()(
  "DependencyUnavailable",
  "dependency_unavailable",
  503,
  "A dependency is unavailable",
) {}
