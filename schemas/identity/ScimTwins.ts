/**
 * Event types of the SCIM profile (RFC 9967) beside the program's own: an event of these kinds has a twin, which a
 * stream gets whose receiver asks for that type and not for the event's own (docs/streams.md). No two kinds share one.
 *
 * The feed is the project's audience: a person joins it with Access, and leaves it without saying that the account
 * ended, which the `prov` events say.
 */
import type { LifecycleEventKind } from "./LifecycleEventKinds.ts"

const scim = (name: string) => `urn:ietf:params:scim:event:${name}`

interface ScimTwin {
  readonly uri: string
  /** Attributes of the user that changed; RFC 9967, 2.4, asks for them where an event is a notice. */
  readonly attributes?: ReadonlyArray<string>
}

export const scimTwins: Readonly<Partial<Record<LifecycleEventKind, ScimTwin>>> = {
  "access-granted": { uri: scim("feed:add") },
  "access-revoked": { uri: scim("feed:remove") },
  "token-claims-change": { uri: scim("prov:patch:notice"), attributes: ["roles"] },
  "account-disabled": { uri: scim("prov:deactivate") },
  "account-enabled": { uri: scim("prov:activate") },
  "account-purged": { uri: scim("prov:delete") },
}

/** The event types of twins. */
export const scimEvents: ReadonlyArray<string> = Object.values(scimTwins).map(({ uri }) => uri)
