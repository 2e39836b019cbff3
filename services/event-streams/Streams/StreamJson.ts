/** Streams as the Shared Signals Framework writes them (8.1.1), and the properties that a receiver cannot set. Pure. */
import { Redacted } from "effect"
import {
  minVerificationInterval,
  poll,
  push,
  type StreamChange,
  type StreamConfiguration,
  type TransmitterConfiguration,
} from "../../../schemas/identity/StreamBodies.ts"
import { audienceOf, lifecycleIssuer } from "../../lifecycle/EventSigner.ts"
import type { StreamRow } from "./Rows.ts"
import { eventsDelivered, eventsOffered } from "./StreamSubjects.ts"

const streams = "/v1/lifecycle/streams"

const audiences = audienceOf("")

/** The project of an audience; null where the audience names no project. */
export const projectOf = (audience: string): string | null =>
  audience.startsWith(audiences) && audience.length > audiences.length ? audience.slice(audiences.length) : null

/** The URL at which a stream is polled; each stream has its own. */
export const pollUrl = (publicUrl: URL, streamId: string): string =>
  new URL(`${streams}/${streamId}/poll`, publicUrl).href

/** The transmitter's metadata (7.1); no credential is needed to read it. */
export const transmitterConfiguration = (publicUrl: URL): TransmitterConfiguration => {
  const at = (path: string) => new URL(path, publicUrl).href
  return {
    spec_version: "1_0",
    issuer: lifecycleIssuer(publicUrl),
    jwks_uri: at("/v1/lifecycle/jwks"),
    delivery_methods_supported: [push, poll],
    configuration_endpoint: at(streams),
    status_endpoint: at("/v1/lifecycle/status"),
    add_subject_endpoint: at("/v1/lifecycle/subjects:add"),
    remove_subject_endpoint: at("/v1/lifecycle/subjects:remove"),
    verification_endpoint: at("/v1/lifecycle/verify"),
    critical_subject_members: ["tenant", "application"],
    authorization_schemes: [{ spec_urn: "urn:ietf:rfc:6749" }],
    default_subjects: "ALL",
  }
}

type Shown = Pick<
  StreamRow,
  "delivery" | "description" | "endpoint_url" | "events_requested" | "id" | "project_id"
>

/**
 * A stream's configuration. `authorization` is the header that its receiver gave: 8.1.1.2 shows the configuration
 * whole, and 8.1.1.4 lets a receiver send what it read back as what it wants, where whatever is missing is deleted.
 */
export const configurationOf = (
  row: Shown,
  authorization: Redacted.Redacted | null,
  publicUrl: URL,
): StreamConfiguration => ({
  stream_id: row.id,
  iss: lifecycleIssuer(publicUrl),
  aud: audienceOf(row.project_id),
  delivery: row.delivery === "poll" ? { method: poll, endpoint_url: pollUrl(publicUrl, row.id) } : {
    method: push,
    endpoint_url: row.endpoint_url ?? "",
    ...(authorization === null ? {} : { authorization_header: Redacted.value(authorization) }),
  },
  events_supported: eventsOffered(row.events_requested),
  ...(row.events_requested === null ? {} : { events_requested: row.events_requested }),
  events_delivered: eventsDelivered(row.events_requested),
  min_verification_interval: minVerificationInterval,
  ...(row.description === null ? {} : { description: row.description }),
})

const sameSet = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) => {
  const [a, b] = [new Set(one), new Set(other)]
  return a.size === b.size && [...a].every((item) => b.has(item))
}

const listOf = (value: string | ReadonlyArray<string>) => typeof value === "string" ? [value] : value

/**
 * The properties that only the transmitter sets and that the receiver sent with another value. `stands` is the
 * configuration before any change; `address` the URL at which the stream is polled, null for a stream that does not
 * exist yet, which has no id either.
 */
export const mismatchesOf = (
  sent: Partial<StreamChange>,
  stands: StreamConfiguration,
  address: string | null,
): ReadonlyArray<string> => {
  const { aud, delivery, events_delivered, events_supported, iss, min_verification_interval, stream_id } = sent
  const polled = delivery?.method === poll ? delivery.endpoint_url ?? null : null
  const other: Readonly<Record<string, boolean>> = {
    stream_id: stream_id !== undefined && (address === null || stream_id.toLowerCase() !== stands.stream_id),
    iss: iss !== undefined && iss !== stands.iss,
    aud: aud !== undefined && !sameSet(listOf(aud), [stands.aud]),
    events_supported: events_supported !== undefined && !sameSet(events_supported, stands.events_supported),
    events_delivered: events_delivered !== undefined && !sameSet(events_delivered, stands.events_delivered),
    min_verification_interval: min_verification_interval !== undefined &&
      min_verification_interval !== stands.min_verification_interval,
    "delivery.endpoint_url": polled !== null && polled !== address,
  }
  return Object.keys(other).filter((name) => other[name])
}
