/**
 * What the claims of a verified security event token (RFC 8417) ask for: one effect on one person, nothing, or a
 * refusal. A pure function of the claims, the transmitter's configuration and the time; whether anybody knows the person
 * is decided later, and the answer does not tell.
 */
import { Schema } from "effect"
import { storable } from "../../schemas/Validation/Scalars.ts"
import type { Transmitter } from "./ConfiguredTransmitter.ts"
import { isStreamEvent, type SignalEffect, type SignalName, signalOf } from "./SignalEvents.ts"

/** Error codes of RFC 8935 (section 2.4). */
export type SetErrorCode =
  | "invalid_request"
  | "invalid_key"
  | "invalid_issuer"
  | "invalid_audience"
  | "authentication_failed"
  | "access_denied"

/** A refused token. The description is told to the transmitter. */
export interface SetRefusal {
  readonly kind: "refuse"
  readonly err: SetErrorCode
  readonly description: string
}

/** A person, as a transmitter names one. */
export type NamedPerson = { readonly issuer: string; readonly subject: string } | { readonly email: string }

export interface SignalAct {
  readonly kind: "act"
  readonly jti: string
  readonly type: string
  readonly signal: SignalName
  readonly effect: Exclude<SignalEffect, "ignore">
  readonly person: NamedPerson
  /** The one session that ends, by the issuer's name of it; null: all of them. */
  readonly session: string | null
  /** Sign-ins up to this time end, in milliseconds since the epoch: when the event happened, or now. */
  readonly before: number
}

export interface SignalIgnored {
  readonly kind: "ignore"
  readonly jti: string
  readonly type: string
  readonly because:
    /** The transmitter's stream was verified or changed. */
    | "stream_event"
    | "unknown_type"
    /** The configuration says so. */
    | "not_configured"
    /** A format of subjects that names nobody here. */
    | "unknown_subject_format"
    /** The event is about less than the person and the session: a device, or the person in one tenant. */
    | "narrower_subject"
    /** The level of a sign-in rose, or stayed. */
    | "not_lower"
}

export type SignalDecision = SignalAct | SignalIgnored | SetRefusal

/** Seconds that a transmitter's clock may be ahead. */
const aheadSeconds = 60
/** How old a token may be: a transmitter keeps what a receiver did not take, for example over a weekend. */
export const oldestSeconds = 7 * 86_400

// These texts become rows and records: no control characters, and nothing that a database cannot hold.
const Name = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,1000}$/u), storable)
const Seconds = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_799 }))
const Members = Schema.Record(Schema.String, Schema.Unknown)

const Envelope = Schema.Struct({
  iss: Schema.String,
  aud: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  iat: Seconds,
  jti: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,200}$/)),
  events: Schema.Record(Schema.String, Members),
  sub_id: Schema.optionalKey(Members),
})
const isEnvelope = Schema.is(Envelope)
const isIssSub = Schema.is(Schema.Struct({ iss: Name, sub: Name }))
const isEmail = Schema.is(
  Schema.Struct({ email: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,244}@[\x21-\x7e]{1,253}$/)) }),
)
const isOpaque = Schema.is(Schema.Struct({ format: Schema.Literal("opaque"), id: Name }))
const isMembers = Schema.is(Members)
const isName = Schema.is(Name)
const isSeconds = Schema.is(Seconds)

const refuse = (err: SetErrorCode, description: string): SetRefusal => ({ kind: "refuse", err, description })

interface Subject {
  readonly person: NamedPerson
  readonly session: string | null
}

type Unsaid = SignalIgnored["because"]

/** The person whom a simple subject names, a refusal, or why it names nobody. */
const personOf = (subject: unknown, { emails, subjectIssuers }: Transmitter): NamedPerson | SetRefusal | Unsaid => {
  if (!isMembers(subject) || typeof subject["format"] !== "string") {
    return refuse("invalid_request", "sub_id has no format")
  }
  if (subject["format"] === "iss_sub") {
    if (!isIssSub(subject)) return refuse("invalid_request", "sub_id lacks iss or sub")
    return subjectIssuers.includes(subject.iss)
      ? { issuer: subject.iss, subject: subject.sub }
      : refuse("access_denied", "the transmitter may not name people of this issuer")
  }
  if (subject["format"] !== "email") return "unknown_subject_format"
  if (!isEmail(subject)) return refuse("invalid_request", "sub_id lacks an address")
  return emails
    ? { email: subject.email }
    : refuse("access_denied", "the transmitter may not name people by an address")
}

const simple = (subject: unknown, transmitter: Transmitter): Subject | SetRefusal | Unsaid => {
  const person = personOf(subject, transmitter)
  return typeof person === "string" || "kind" in person ? person : { person, session: null }
}

/** A complex subject is the intersection of its members (Shared Signals Framework 1.0, 3.2). */
const subjectOf = (
  subject: Readonly<Record<string, unknown>> | undefined,
  signal: SignalName,
  transmitter: Transmitter,
): Subject | SetRefusal | Unsaid => {
  if (subject?.["format"] !== "complex") return simple(subject, transmitter)
  const { format: _, session, user, ...rest } = subject
  const found = simple(user, transmitter)
  if (typeof found === "string" || "kind" in found) return found
  if (Object.keys(rest).length > 0) return "narrower_subject"
  if (session === undefined) return found
  if (signal !== "session-revoked") return "narrower_subject"
  if (!isOpaque(session)) return isMembers(session) ? "narrower_subject" : refuse("invalid_request", "a faulty session")
  // An address does not say at which issuer the session is.
  return "email" in found.person ? "narrower_subject" : { ...found, session: session.id }
}

/** Whether an `assurance-level-change` says that nothing got weaker. */
const isNotLower = (signal: SignalName, direction: unknown) =>
  signal === "assurance-level-change" && direction !== undefined && direction !== "decrease"

/** Decides on the one event of a token. */
const decideEvent = (
  { iat, jti, sub_id }: typeof Envelope.Type,
  [type, payload]: readonly [type: string, payload: typeof Members.Type],
  transmitter: Transmitter,
  nowMillis: number,
): SignalDecision => {
  const ignore = (because: SignalIgnored["because"]): SignalIgnored => ({ kind: "ignore", jti, type, because })
  if (isStreamEvent(type)) return ignore("stream_event")
  const signal = signalOf(type)
  if (signal === undefined) return ignore("unknown_type")
  const { change_direction: direction, event_timestamp: happened = iat } = payload
  if (!isSeconds(happened)) return refuse("invalid_request", "event_timestamp is no time")
  const subject = subjectOf(sub_id, signal, transmitter)
  if (typeof subject === "string") return ignore(subject)
  if ("kind" in subject) return subject
  const effect = transmitter.effects[signal]
  if (effect === "ignore") return ignore("not_configured")
  if (isNotLower(signal, direction)) return ignore("not_lower")
  return { kind: "act", jti, type, signal, effect, ...subject, before: Math.min(happened * 1_000, nowMillis) }
}

/** Decides on a token's claims. The signature, the algorithm and `typ` were verified. */
export const decideSignal = (claims: unknown, transmitter: Transmitter, nowMillis: number): SignalDecision => {
  if (!isMembers(claims)) return refuse("invalid_request", "no claims")
  if (claims["iss"] !== transmitter.issuer) return refuse("invalid_issuer", "iss is another issuer")
  const { aud } = claims
  if (aud !== transmitter.audience && !(Array.isArray(aud) && aud.includes(transmitter.audience))) {
    return refuse("invalid_audience", "aud is another audience")
  }
  // A token with these could be taken for an ID token or an access token, or the other way round.
  if ("sub" in claims || "exp" in claims) return refuse("invalid_request", "sub and exp must not be present")
  if (!isEnvelope(claims)) return refuse("invalid_request", "iat, jti, events or sub_id is missing or faulty")
  const now = nowMillis / 1_000
  if (claims.iat > now + aheadSeconds) return refuse("invalid_request", "iat is in the future")
  if (claims.iat < now - oldestSeconds) return refuse("invalid_request", "iat is more than 7 days ago")
  const [event, ...more] = Object.entries(claims.events)
  if (event === undefined || more.length > 0) return refuse("invalid_request", "events has not exactly one event")
  if (!isName(event[0])) return refuse("invalid_request", "a faulty event type")
  return decideEvent(claims, event, transmitter, nowMillis)
}
