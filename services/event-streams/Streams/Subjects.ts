/**
 * Which events are for a stream (Shared Signals Framework 1.0, 7.1 `default_subjects: ALL`, 8.1.3): those whose type was
 * asked for, but for subjects that the receiver removed. Pure.
 *
 * - Simple subjects match where they are identical (as JSON), complex ones where no member that both have differs
 *   (8.1.3.1). A simple one stands for the `user`, `application` or `tenant` of a complex one.
 * - An event is left out only where the removed subject covers it: names nothing that the event does not name, too.
 *   Whoever removed one session of a user still hears that all of them ended. In doubt it is sent, which every receiver
 *   must tolerate (9.3); what is not sent would be a revocation that never came.
 * - Of several subjects that speak of an event the one that was said last decides: a tenant removed, one of its users
 *   added again.
 */
import { eventsSupported, type FactKind, factKinds } from "../../../schemas/identity/Facts.ts"
import type { Subject } from "../../../schemas/identity/Subjects.ts"
import { canonical } from "../../platform/security/Canonical.ts"

/** What a receiver said of a subject: added, or removed. */
export interface SaidSubject {
  readonly subject: Subject
  readonly included: boolean
}

/** What a stream is for. */
export interface Wanted {
  /** Event types (URIs); null: all that there are. */
  readonly events_requested: ReadonlyArray<string> | null
  /** In the order in which they were said. */
  readonly subjects: ReadonlyArray<SaidSubject>
}

/** An event, as far as a stream asks. */
export interface StreamEvent {
  readonly kind: FactKind
  readonly subId: Subject
}

/** Those of them that a stream delivers; what is not known is ignored (8.1.1). */
export const eventsDelivered = (requested: ReadonlyArray<string> | null): ReadonlyArray<string> => {
  if (requested === null) return eventsSupported
  const asked = new Set(requested)
  return eventsSupported.filter((uri) => asked.has(uri))
}

/** Of a complex subject its members, each in canonical JSON; of a simple one itself. */
type Parts = { readonly simple: string } | { readonly members: ReadonlyMap<string, string> }

const partsOf = (subject: Subject): Parts =>
  subject.format !== "complex" ? { simple: canonical(subject) } : {
    members: new Map(
      Object.entries(subject).filter(([name]) => name !== "format").map(([name, value]) => [name, canonical(value)]),
    ),
  }

/** The members that a simple subject may stand for. */
const standing = ["user", "application", "tenant"]

const standsIn = (simple: string, members: ReadonlyMap<string, string>) =>
  standing.some((name) => members.get(name) === simple)

/** 8.1.3.1. */
const matching = (one: Parts, other: Parts): boolean => {
  if ("simple" in one) return "simple" in other ? one.simple === other.simple : standsIn(one.simple, other.members)
  if ("simple" in other) return standsIn(other.simple, one.members)
  for (const [name, value] of one.members) if ((other.members.get(name) ?? value) !== value) return false
  return true
}

/** Whether all that a removed subject names is named, and the same, in the event's. */
const covering = (removed: Parts, event: Parts): boolean => {
  if ("simple" in removed) return matching(removed, event)
  if ("simple" in event) {
    return [...removed.members].every(([name, value]) => standing.includes(name) && value === event.simple)
  }
  return [...removed.members].every(([name, value]) => event.members.get(name) === value)
}

/** Whether two subjects match (8.1.3.1). */
export const subjectsMatch = (one: Subject, other: Subject): boolean => matching(partsOf(one), partsOf(other))

/** The test of one stream for many events. */
export const filterOf = ({ events_requested: requested, subjects }: Wanted): (event: StreamEvent) => boolean => {
  const types = new Set(eventsDelivered(requested))
  const latestFirst = subjects.map(({ included, subject }) => ({ included, parts: partsOf(subject) })).reverse()
  return ({ kind, subId }) => {
    if (!types.has(factKinds[kind].uri)) return false
    if (latestFirst.length === 0) return true
    const event = partsOf(subId)
    const speaking = latestFirst.find(({ included, parts }) => (included ? matching : covering)(parts, event))
    return speaking?.included ?? true
  }
}

/** Whether an event is for a stream. */
export const isFor = (stream: Wanted, event: StreamEvent): boolean => filterOf(stream)(event)

/** Whether a stream leaves anything out: only one that does not has promised positions (docs/streams.md). */
export const filtered = ({ events_requested: requested, subjects }: Wanted): boolean =>
  eventsDelivered(requested).length < eventsSupported.length || subjects.some(({ included }) => !included)
