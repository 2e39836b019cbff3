/**
 * The error body of all APIs: RFC 9457 `application/problem+json` with three members of ours.
 *
 * A service fails with a Problem for every fault that a client can cause. The Problem describes the fault (`code`,
 * `status`, `title`, `detail`); the HTTP edge adds the occurrence (`instance`, `request_id`, `audit_id`).
 */
import { Schema } from "effect"
import { HttpApiError } from "effect/http-api"
import { Id } from "../Wire.ts"

/** A problem type is a name, not an address: it is never fetched. */
export const typeOf = <const Code extends string>(code: Code): `urn:bailiwick:problem:${Code}` =>
  `urn:bailiwick:problem:${code}`

const located = {
  request_id: Schema.optionalKey(Schema.String),
  audit_id: Schema.optionalKey(Schema.NullOr(Id)),
}

/**
 * Declares a problem class: `class NotFound extends Problem<NotFound>()("NotFound", "not_found", 404, "Not found") {}`.
 * `extra` adds members to the body (`blockers`, `retry_after`).
 */
export const Problem = <Self = never>() =>
<
  const Tag extends string,
  const Code extends string,
  const Status extends number,
  const Extra extends Schema.Struct.Fields & {
    readonly type?: never
    readonly status?: never
    readonly title?: never
  } = Record<never, never>,
>(
  tag: Tag,
  code: Code,
  status: Status,
  title: string,
  extra?: Extra,
) =>
  HttpApiError.Problem<Self>()(tag, { type: typeOf(code), status, title }, {
    code: Schema.tag(code),
    ...located,
    ...(extra ?? {} as Extra),
  })
