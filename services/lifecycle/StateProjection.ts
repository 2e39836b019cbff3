/**
 * The state projection: what a product knows after an event, as the fold of its project's history. Each append keeps it
 * in `lifecycle_state`, so that a snapshot is exactly what the events before it come to. An event sets keys and deletes
 * keys, whatever they held before.
 */
import type { LifecycleEventKind } from "../../schemas/identity/LifecycleEventKinds.ts"

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** A new value of one key of the state; null deletes the key. */
export interface Change {
  readonly key: string
  readonly value: Json
}

export interface AppendedEvent {
  readonly kind: LifecycleEventKind
  readonly subId: Json
  readonly payload: Json
}

const member = (value: Json | undefined, ...path: ReadonlyArray<string>): Json | undefined =>
  path.reduce<Json | undefined>(
    (at, name) =>
      at !== null && typeof at === "object" && !Array.isArray(at)
        ? (at as { readonly [key: string]: Json })[name]
        : undefined,
    value,
  )

/** The subject's person, whatever the format. */
const userOf = (subId: Json): Json => member(subId, "user") ?? (member(subId, "format") === "iss_sub" ? subId : null)

/** A key of one identity; escaped, so that an issuer with a space in it cannot make the key of another identity. */
const nameOf = (user: Json): string =>
  `${String(member(user, "iss")).replaceAll("%", "%25").replaceAll(" ", "%20")} ${member(user, "sub")}`

/** The state's key of a person's account. */
export const accountKey = ({ issuer, subject }: { readonly issuer: string; readonly subject: string }): string =>
  `person/${nameOf({ iss: issuer, sub: subject })}`

const set = (key: string, value: Json): ReadonlyArray<Change> => [{ key, value }]

/** The changes of one event, in order. */
export const changesOf = ({ kind, payload, subId }: AppendedEvent): ReadonlyArray<Change> => {
  const user = userOf(subId)
  const at = member(payload, "event_timestamp") ?? null
  const text = (...path: ReadonlyArray<string>) => String(member(payload, ...path))
  switch (kind) {
    case "access-granted":
    case "token-claims-change":
      return set(`access/${text("access", "access_id")}`, { user, ...Object(member(payload, "access")) })
    case "access-revoked":
      return set(`access/${text("access", "access_id")}`, null)
    case "account-disabled":
      return set(`person/${nameOf(user)}`, { user, status: "disabled", since: at })
    case "account-purged":
      return set(`person/${nameOf(user)}`, { user, status: "purged", since: at })
    case "account-enabled":
      return set(`person/${nameOf(user)}`, null)
    case "session-revoked": {
      const session = member(subId, "session", "id")
      return session === undefined
        ? set(`sessions_floor/${nameOf(user)}`, { user, not_before: at })
        : set(`session/${JSON.stringify([member(user, "iss"), member(user, "sub"), session])}`, {
          user,
          session,
          revoked_at: at,
        })
    }
    case "identity-linked": {
      // An identity that replaced another one, or was added beside it; a person may have several of either.
      const previous = member(payload, "previous") ?? null
      const linked = member(payload, "linked") ?? null
      const names = [user, linked ?? previous].flatMap((name) => [member(name, "iss"), member(name, "sub")])
      return set(`identity/${JSON.stringify(names.map(String))}`, { user, previous, linked, linked_at: at })
    }
    case "project-registered":
    case "project-launched":
    case "project-withdrawn":
      return set("project", { status: kind.slice("project-".length), since: at })
    case "project-owner-changed":
      return set(
        `owner/${text("owner", "person_id")}`,
        member(payload, "owner", "active") === true ? member(payload, "owner") ?? null : null,
      )
    case "service-grant-approved":
      return set(`service_grant/${text("grant", "grant_id")}`, member(payload, "grant") ?? null)
    case "service-grant-revoked":
      return set(`service_grant/${text("grant", "grant_id")}`, null)
    case "access-review-approved":
      return set(`review/${text("review", "review_id")}`, { user, ...Object(member(payload, "review")) })
    case "access-review-revoked":
      return set(`review/${text("review", "review_id")}`, null)
    case "key-transition":
      return set("keys", member(payload, "next") === undefined ? null : { next: member(payload, "next")! })
    case "credential-change":
    case "credential-compromise":
    case "recovery-information-changed":
    case "assurance-level-change":
      return []
  }
}
