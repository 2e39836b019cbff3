/**
 * Streams of the Shared Signals Framework 1.0 (8.1): the requests of a receiver, and its answers. Unknown members of a
 * request are ignored; a request may repeat members that the transmitter supplies, with the same values.
 */
import { Schema } from "effect"
import { codePoints, Text } from "../Validation/Scalars.ts"
import { Subject } from "./SubjectIds.ts"
import { Id } from "../Wire.ts"

/** Delivery methods. */
export const push = "urn:ietf:rfc:8935"
export const poll = "urn:ietf:rfc:8936"

/** Seconds between two verifications that a receiver asks for. */
export const minVerificationInterval = 30

export const StreamStatus = Schema.Literals(["enabled", "paused", "disabled"])
export type StreamStatus = typeof StreamStatus.Type

/** A header's value that needs no encoding (RFC 9110, 5.5). */
const HeaderValue = Schema.String.check(
  codePoints(1, 4_096),
  Schema.isPattern(/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/u),
)

const PushDelivery = Schema.Struct({
  method: Schema.Literal(push),
  /** https, a public address. */
  endpoint_url: Text(1, 2_048),
  /** Sent with every message; shown only to the receiver that supplied it. */
  authorization_header: Schema.optionalKey(HeaderValue),
}).annotate({ identifier: "StreamPushDelivery" })

const PollDelivery = Schema.Struct({
  method: Schema.Literal(poll),
  /** The transmitter's own address: a request need not send it. */
  endpoint_url: Schema.optionalKey(Schema.NullOr(Schema.String)),
}).annotate({ identifier: "StreamPollRequest" })

const DeliveryRequest = Schema.Union([PushDelivery, PollDelivery])
export type DeliveryRequest = typeof DeliveryRequest.Type

const Events = Schema.Array(Text(1, 2_048)).check(Schema.isMaxLength(100))
const Listed = Schema.Array(Schema.String)
/** A list in a request: the transmitter's own lists have a few items. */
const Repeated = Listed.check(Schema.isMaxLength(100))

/** Members that the transmitter supplies, beside the id. */
const supplied = {
  iss: Schema.optionalKey(Schema.String),
  aud: Schema.optionalKey(Schema.Union([Schema.String, Repeated])),
  events_supported: Schema.optionalKey(Repeated),
  events_delivered: Schema.optionalKey(Repeated),
  min_verification_interval: Schema.optionalKey(Schema.Finite),
}

/** Members that the receiver supplies. */
const asked = {
  /** By default poll. */
  delivery: Schema.optionalKey(DeliveryRequest),
  /** By default all types; unknown ones are ignored. */
  events_requested: Schema.optionalKey(Events),
  description: Schema.optionalKey(Text(0, 1_000)),
}

export const StreamCreation = Schema.Struct({
  stream_id: Schema.optionalKey(Schema.String),
  ...supplied,
  ...asked,
}).annotate({ identifier: "StreamCreation" })
export type StreamCreation = typeof StreamCreation.Type

export const StreamChange = Schema.Struct({ stream_id: Id, ...supplied, ...asked })
  .annotate({ identifier: "StreamChange" })
export type StreamChange = typeof StreamChange.Type

export const StreamConfiguration = Schema.Struct({
  stream_id: Id,
  iss: Schema.String,
  /** The audience of the project that the stream serves. */
  aud: Schema.String,
  delivery: Schema.Union([
    PushDelivery,
    Schema.Struct({ method: Schema.Literal(poll), endpoint_url: Schema.String })
      .annotate({ identifier: "StreamPollDelivery" }),
  ]),
  events_supported: Listed,
  events_requested: Schema.optionalKey(Listed),
  events_delivered: Listed,
  /** Seconds. */
  min_verification_interval: Schema.Int,
  description: Schema.optionalKey(Schema.String),
}).annotate({ identifier: "StreamConfiguration" })
export type StreamConfiguration = typeof StreamConfiguration.Type

const OwnWords = Text(0, 1_000)

/** 8.1.2: the same in a request and an answer. */
export const StreamState = Schema.Struct({
  stream_id: Id,
  status: StreamStatus,
  reason: Schema.optionalKey(OwnWords),
}).annotate({ identifier: "StreamState" })
export type StreamState = typeof StreamState.Type

export const VerificationRequest = Schema.Struct({
  stream_id: Id,
  /** Comes back in the verification event. */
  state: Schema.optionalKey(OwnWords),
}).annotate({ identifier: "StreamVerification" })
export type VerificationRequest = typeof VerificationRequest.Type

export const SubjectAddition = Schema.Struct({
  stream_id: Id,
  subject: Subject,
  /** Accepted, and ignored. */
  verified: Schema.optionalKey(Schema.Boolean),
}).annotate({ identifier: "StreamSubjectAddition" })

export const SubjectRemoval = Schema.Struct({ stream_id: Id, subject: Subject })
  .annotate({ identifier: "StreamSubjectRemoval" })

/** 7.1: the answer of `/.well-known/ssf-configuration`. */
export const TransmitterConfiguration = Schema.Struct({
  spec_version: Schema.String,
  issuer: Schema.String,
  jwks_uri: Schema.String,
  delivery_methods_supported: Listed,
  configuration_endpoint: Schema.String,
  status_endpoint: Schema.String,
  add_subject_endpoint: Schema.String,
  remove_subject_endpoint: Schema.String,
  verification_endpoint: Schema.String,
  critical_subject_members: Listed,
  authorization_schemes: Schema.Array(Schema.Struct({ spec_urn: Schema.String })),
  default_subjects: Schema.Literals(["ALL", "NONE"]),
}).annotate({ identifier: "SsfTransmitterConfiguration" })
export type TransmitterConfiguration = typeof TransmitterConfiguration.Type
