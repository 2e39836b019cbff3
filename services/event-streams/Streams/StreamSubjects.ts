/**
 * Decides which events are for a stream (Shared Signals Framework 1.0, 7.1 `default_subjects: ALL`, 8.1.3): events of
 * the requested types, without the subjects that the receiver removed. Pure.
 *
 * - Simple subjects match where they are identical (as JSON), complex subjects where no member that both have differs
 *   (8.1.3.1). A simple subject matches the `user`, `application` or `tenant` of a complex subject.
 * - An event is left out only where the removed subject covers it: every member of the removed subject is in the event,
 *   with the same value. A receiver that removed one session of a user still gets the event that all sessions ended. In
 *   doubt the event is sent, which every receiver must tolerate (9.3); an event left out could be a lost revocation.
 * - Where several subjects match an event the last one decides: a tenant removed, then one of its users added again.
 */
import {
  eventsSupported,
  type LifecycleEventKind,
  lifecycleEventKinds,
} from "../../../schemas/identity/LifecycleEventKinds.ts"
import { scimEvents, scimTwins } from "../../../schemas/identity/ScimTwins.ts"
import type { Subject } from "../../../schemas/identity/SubjectIds.ts"
import { canonical } from "../../platform/security/CanonicalJson.ts"

/** A subject that a receiver added or removed. */
export interface SaidSubject {
  readonly subject: Subject
  readonly included: boolean
}

/** The events and subjects that a receiver wants. */
export interface Wanted {
  /** Event types (URIs); null: all types. */
  readonly events_requested: ReadonlyArray<string> | null
  /** In the order in which they were added or removed. */
  readonly subjects: ReadonlyArray<SaidSubject>
}

/** The members of an event by which it is filtered. */
export interface StreamEvent {
  readonly kind: LifecycleEventKind
  readonly subId: Subject
}

/** The program's own event types that a stream delivers. */
const ownDelivered = (requested: ReadonlyArray<string> | null): ReadonlyArray<string> => {
  if (requested === null) return eventsSupported
  const asked = new Set(requested)
  return eventsSupported.filter((uri) => asked.has(uri))
}

/**
 * Whether a stream gets events of this kind as their twin of RFC 9967. An event travels a stream in one form, so that
 * one acknowledgement settles its position: its own, where both are asked for.
 */
export const deliversTwin = (requested: ReadonlyArray<string> | null, kind: LifecycleEventKind): boolean => {
  const twin = scimTwins[kind]
  return twin !== undefined && requested !== null && requested.includes(twin.uri) &&
    !requested.includes(lifecycleEventKinds[kind].uri)
}

const twinsDelivered = (requested: ReadonlyArray<string> | null): ReadonlyArray<string> =>
  (Object.keys(scimTwins) as ReadonlyArray<LifecycleEventKind>)
    .filter((kind) => deliversTwin(requested, kind)).map((kind) => scimTwins[kind]!.uri)

/** Whether a stream gets any event as its twin. */
export const deliversTwins = (requested: ReadonlyArray<string> | null): boolean => twinsDelivered(requested).length > 0

/** The event types that a stream delivers; unknown types are ignored (8.1.1). */
export const eventsDelivered = (
  requested: ReadonlyArray<string> | null,
): ReadonlyArray<string> => [...ownDelivered(requested), ...twinsDelivered(requested)]

/**
 * The event types that there are for a receiver. Those of RFC 9967 are among them once it asks for one: a receiver that
 * does not know them sees what it saw before there were any.
 */
export const eventsOffered = (requested: ReadonlyArray<string> | null): ReadonlyArray<string> =>
  requested?.some((uri) => scimEvents.includes(uri)) === true ? [...eventsSupported, ...scimEvents] : eventsSupported

/** The members of a complex subject, each in canonical JSON, or a simple subject in canonical JSON. */
type Parts = { readonly simple: string } | { readonly members: ReadonlyMap<string, string> }

const partsOf = (subject: Subject): Parts =>
  subject.format !== "complex" ? { simple: canonical(subject) } : {
    members: new Map(
      Object.entries(subject).filter(([name]) => name !== "format").map(([name, value]) => [name, canonical(value)]),
    ),
  }

/** The members of a complex subject that a simple subject may match. */
const standing = ["user", "application", "tenant"]

const standsIn = (simple: string, members: ReadonlyMap<string, string>) =>
  standing.some((name) => members.get(name) === simple)

/** Whether two subjects match (8.1.3.1). */
const matching = (one: Parts, other: Parts): boolean => {
  if ("simple" in one) return "simple" in other ? one.simple === other.simple : standsIn(one.simple, other.members)
  if ("simple" in other) return standsIn(other.simple, one.members)
  for (const [name, value] of one.members) if ((other.members.get(name) ?? value) !== value) return false
  return true
}

/** Whether the event's subject has every member of the removed subject, with the same value. */
const covering = (removed: Parts, event: Parts): boolean => {
  if ("simple" in removed) return matching(removed, event)
  if ("simple" in event) {
    return [...removed.members].every(([name, value]) => standing.includes(name) && value === event.simple)
  }
  return [...removed.members].every(([name, value]) => event.members.get(name) === value)
}

/** Whether two subjects match (8.1.3.1). */
export const subjectsMatch = (one: Subject, other: Subject): boolean => matching(partsOf(one), partsOf(other))

/** Whether a subject names a person, as that of each twin does. */
const hasPerson = (subId: Subject) => subId.format === "iss_sub" || subId.format === "complex" && "user" in subId

/** Prepares the filter of one stream, for many events. */
export const filterOf = ({ events_requested: requested, subjects }: Wanted): (event: StreamEvent) => boolean => {
  const types = new Set(ownDelivered(requested))
  const latestFirst = subjects.map(({ included, subject }) => ({ included, parts: partsOf(subject) })).reverse()
  return ({ kind, subId }) => {
    if (!types.has(lifecycleEventKinds[kind].uri) && !(deliversTwin(requested, kind) && hasPerson(subId))) return false
    if (latestFirst.length === 0) return true
    const event = partsOf(subId)
    const speaking = latestFirst.find(({ included, parts }) => (included ? matching : covering)(parts, event))
    return speaking?.included ?? true
  }
}

/** Whether an event is for a stream. */
export const isFor = (stream: Wanted, event: StreamEvent): boolean => filterOf(stream)(event)

/** Whether a stream leaves anything out, or gives it as a twin: only a stream that leaves nothing out promises positions (docs/streams.md). */
export const filtered = ({ events_requested: requested, subjects }: Wanted): boolean =>
  ownDelivered(requested).length < eventsSupported.length || subjects.some(({ included }) => !included)
