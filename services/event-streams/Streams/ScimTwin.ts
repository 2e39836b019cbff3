/**
 * The twin of an event: the same fact as a security event token of the SCIM profile (RFC 9967), with claims that follow
 * from the event's message alone and the id of its person. Pure.
 *
 * Its id is the event's with the version 8 of RFC 9562 in place of 7, so that an acknowledgement names the event, no
 * table keeps a pair, and no event has the id of a twin.
 */
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { scimTwins } from "../../../schemas/identity/ScimTwins.ts"

/** The claims of an event's message that its twin shares. */
export interface SourceClaims {
  readonly iss: string
  readonly jti: string
  readonly iat: number
  readonly aud: string
  readonly txn: string
  readonly sub_id: { readonly [member: string]: unknown }
}

const versionAt = 14

const withVersion = (id: string, version: string) => id.slice(0, versionAt) + version + id.slice(versionAt + 1)

/** The twin's id. */
export const twinIdOf = (eventId: string): string => withVersion(eventId, "8")

/** The id of the event that a message is of; that of any other message is as it was. */
export const eventIdOf = (jti: string): string => jti[versionAt] === "8" ? withVersion(jti, "7") : jti

/** The person of a subject (RFC 9493), as the issuer names it. */
const nameOf = (subId: SourceClaims["sub_id"]): string | null => {
  const user = subId["format"] === "complex" ? subId["user"] : subId
  const sub = typeof user === "object" && user !== null && "sub" in user ? user.sub : null
  return typeof sub === "string" ? sub : null
}

/** The claims of an event's twin; null where the kind has none, or the event is about no person. */
export const twinOf = (
  { aud, iat, iss, jti, sub_id: subId, txn }: SourceClaims,
  kind: LifecycleEventKind,
  personId: string | null,
) => {
  const twin = scimTwins[kind]
  const externalId = nameOf(subId)
  if (twin === undefined || personId === null || externalId === null) return null
  const { attributes, uri } = twin
  return {
    iss,
    jti: twinIdOf(jti),
    iat,
    aud,
    txn,
    sub_id: { format: "scim", uri: `/Users/${encodeURIComponent(personId)}`, externalId },
    events: { [uri]: attributes === undefined ? {} : { attributes } },
  }
}
