/**
 * The state projection of a product: the changes that an event makes to the entries of its state. The transmitter keeps
 * the same projection, so a snapshot and the events after it give the same state as all events. An event sets and
 * removes whole entries and does not read their values; event types that this version does not know change nothing.
 */
import { type Json, member } from "./Canonical.ts"
import type { VerifiedEvent } from "./VerifiedEvent.ts"

/** The groups of entries, as in a snapshot's state. */
export const groups = [
  "people",
  "access",
  "sessions_floor",
  "sessions",
  "identities",
  "owners",
  "service_grants",
  "reviews",
  "project",
  "keys",
] as const
export type Group = (typeof groups)[number]

export interface StateEntry {
  readonly group: Group
  /** Unique in its group. */
  readonly id: string
  readonly value: Json
}

/** An entry to set, or, if the value is null, to remove. */
export interface Change extends Omit<StateEntry, "value"> {
  readonly value: Json | null
}

export interface Name {
  readonly issuer: string
  readonly subject: string
}

/** The name in a subject identifier of the format `iss_sub`; null without one. */
export const nameOf = (user: Json | undefined): Name | null => {
  const [issuer, subject] = [member(user, "iss"), member(user, "sub")]
  return typeof issuer === "string" && typeof subject === "string" ? { issuer, subject } : null
}

const text = (value: Json | undefined) => typeof value === "string" ? value : ""
const named = (
  user: Json | undefined,
) => [text(member(user, "iss")), text(member(user, "sub"))]

/** The other name in an entry of `identities`: the linked one, or the previous one. */
export const otherOf = (
  value: Json,
): { readonly name: Name; readonly linked: boolean } | null => {
  const linked = nameOf(member(value, "linked"))
  const name = linked ?? nameOf(member(value, "previous"))
  return name === null ? null : { name, linked: linked !== null }
}

const ids: Readonly<Record<Group, (value: Json) => string>> = {
  people: (value) => JSON.stringify(named(member(value, "user"))),
  access: (value) => text(member(value, "access_id")),
  sessions_floor: (value) => JSON.stringify(named(member(value, "user"))),
  sessions: (value) =>
    JSON.stringify([
      ...named(member(value, "user")),
      text(member(value, "session")),
    ]),
  identities: (value) => {
    const other = otherOf(value)?.name
    return JSON.stringify([
      ...named(member(value, "user")),
      other?.issuer ?? "",
      other?.subject ?? "",
    ])
  },
  owners: (value) => text(member(value, "person_id")),
  service_grants: (value) => text(member(value, "grant_id")),
  reviews: (value) => text(member(value, "review_id")),
  project: () => "",
  keys: () => "",
}

/** The entries in a snapshot's state. Groups that this version does not know are left out. */
export const entriesOf = (
  state: { readonly [group: string]: Json },
): ReadonlyArray<StateEntry> =>
  groups.flatMap((group) => {
    const value = state[group] ?? null
    const values: ReadonlyArray<Json> = Array.isArray(value) ? value : value === null ? [] : [value]
    return values.map((value) => ({ group, id: ids[group](value), value }))
  })

const own = "https://schemas.bailiwick.dev/secevent/lifecycle/event-type/"
const caep = "https://schemas.openid.net/secevent/caep/event-type/"
const risc = "https://schemas.openid.net/secevent/risc/event-type/"

/** The person in a subject identifier, simple or complex; null without one. */
export const userOf = (subId: Json): Json =>
  member(subId, "user") ??
    (member(subId, "format") === "iss_sub" ? subId : null)

const set = (
  group: Group,
  value: Json,
): ReadonlyArray<Change> => [{ group, id: ids[group](value), value }]
const remove = (
  group: Group,
  value: Json,
): ReadonlyArray<Change> => [{ group, id: ids[group](value), value: null }]
const membersOf = (value: Json | undefined) => Object(value ?? {}) as { readonly [name: string]: Json }

/** The changes that an event makes. */
export const changesOf = (
  { payload, subId, type }: Pick<VerifiedEvent, "payload" | "subId" | "type">,
): ReadonlyArray<
  Change
> => {
  const user = userOf(subId)
  const since = member(payload, "event_timestamp") ?? null
  const part = (name: string) => member(payload, name) ?? null
  switch (type) {
    case `${own}access-granted`:
    case `${caep}token-claims-change`:
      return set("access", { user, ...membersOf(part("access")) })
    case `${own}access-revoked`:
      return remove("access", part("access"))
    case `${risc}account-disabled`:
      return set("people", { user, status: "disabled", since })
    case `${risc}account-purged`:
      return set("people", { user, status: "purged", since })
    case `${risc}account-enabled`:
      return remove("people", { user })
    case `${caep}session-revoked`: {
      const session = member(subId, "session", "id")
      return session === undefined
        ? set("sessions_floor", { user, not_before: since })
        : set("sessions", { user, session, revoked_at: since })
    }
    case `${own}identity-linked`:
      return set("identities", {
        user,
        previous: part("previous"),
        linked: part("linked"),
        linked_at: since,
      })
    case `${own}project-registered`:
    case `${own}project-launched`:
    case `${own}project-withdrawn`:
      return set("project", {
        status: type.slice(`${own}project-`.length),
        since,
      })
    case `${own}project-owner-changed`:
      return member(payload, "owner", "active") === true
        ? set("owners", part("owner"))
        : remove("owners", part("owner"))
    case `${own}service-grant-approved`:
      return set("service_grants", part("grant"))
    case `${own}service-grant-revoked`:
      return remove("service_grants", part("grant"))
    case `${own}access-review-approved`:
      return set("reviews", { user, ...membersOf(part("review")) })
    case `${own}access-review-revoked`:
      return remove("reviews", part("review"))
    case `${own}key-transition`:
      return part("next") === null ? remove("keys", null) : set("keys", { next: part("next") })
    default:
      return []
  }
}

/** The thumbprints of keys that an event announces; they are pinned when the event is committed. */
export const announcedBy = (
  { payload, type }: Pick<VerifiedEvent, "payload" | "type">,
): ReadonlyArray<string> => {
  const next = type === `${own}key-transition` ? member(payload, "next") : undefined
  return Array.isArray(next) ? next.filter((kid) => typeof kid === "string") : []
}

/** The thumbprint of the key that an event reports as stolen; null otherwise. */
export const compromisedBy = ({ payload, type }: Pick<VerifiedEvent, "payload" | "type">): string | null => {
  const stolen = type === `${own}key-transition` ? member(payload, "compromised") : undefined
  return typeof stolen === "string" ? stolen : null
}
