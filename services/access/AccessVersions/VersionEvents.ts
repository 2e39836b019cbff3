/** The events of a new version of an Access. */
import type { AccessId } from "../../../schemas/BrandedIds.ts"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import type { NewLifecycleEvent } from "../../lifecycle/EventLog.ts"
import { type Person, personOf } from "../../people/PersonAudience.ts"
import type { Grant, Last, Makers } from "./VersionRows.ts"

const codes = {
  "access-granted": "ACCESS_GRANTED",
  "access-revoked": "ACCESS_REVOKED",
  "token-claims-change": "ACCESS_ROLE_CHANGED",
} as const

export const kindOf = (last: Last | null, next: Grant) =>
  next.state === "revoked" ? "access-revoked" : last?.state === "active" ? "token-claims-change" : "access-granted"

const causeOf = ({ ended = false, madeBy }: Makers) =>
  ended ? "AT_ITS_END" : madeBy === null ? "BY_DIRECTORY" : "BY_ADMINISTRATOR"

/**
 * The events of a new version, the grant Event first; `statusEvent`: the event for the person's status, where one is due.
 */
export const eventsOfVersion = (
  accessId: AccessId,
  last: Last | null,
  next: Grant,
  person: Person,
  makers: Makers,
  statusEvent: LifecycleEventKind | null,
) => {
  const kind = kindOf(last, next)
  const access = {
    access_id: accessId,
    version: (last?.accessVersion ?? 0) + 1,
    ...(last === null ? {} : { previous_version: last.accessVersion }),
    role: next.role,
  }
  const reason = { reason_admin: { en: `${codes[kind]}_${causeOf(makers)}` } }
  const eventOf = (
    kind: LifecycleEventKind,
    payload: NonNullable<NewLifecycleEvent["payload"]> = {},
  ): NewLifecycleEvent => ({
    kind,
    projectId: next.projectId,
    institutionId: next.institutionId,
    person: personOf(person),
    payload: { ...reason, ...payload },
    initiatedBy: makers.madeBy === null ? "system" : "admin",
  })
  // A revoked Access also ends the person's sessions there.
  return [
    eventOf(kind, kind === "token-claims-change" ? { access, claims: { role: next.role } } : { access }),
    ...(kind === "access-revoked" && last?.state === "active" ? [eventOf("session-revoked")] : []),
    ...(statusEvent === null ? [] : [eventOf(statusEvent)]),
  ]
}
