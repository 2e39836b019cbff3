/**
 * What RFC 9967 asks of a token's claims, written from the RFC and not from the program: 2.1 (`sub_id`, no `sub`), 2.3
 * (feed events have no members), 2.4 (exactly one of `data` and `attributes` in create, patch and put).
 */

const feed = ["feed:add", "feed:remove"]
const bare = ["prov:delete", "prov:activate", "prov:deactivate"]
const full = ["prov:create:full", "prov:patch:full", "prov:put:full"]
const notices = ["prov:create:notice", "prov:patch:notice", "prov:put:notice"]

const isText = (value: unknown) => typeof value === "string" && value.trim() !== ""

/** What is wrong with these claims; empty where nothing is. */
export const scimFaults = (claims: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const must = (holds: boolean, fault: string) => void (holds || faults.push(fault))
  for (const member of ["iss", "jti", "txn"]) must(isText(claims[member]), `${member} is missing`)
  must(Number.isInteger(claims["iat"]), "iat is no time")
  for (const member of ["sub", "exp"]) must(!(member in claims), `${member} is there`)
  const subject = claims["sub_id"] as Readonly<Record<string, unknown>> | undefined
  must(subject?.["format"] === "scim", "sub_id has another format")
  // A relative path: the resource's endpoint and its id, as in the RFC's `/Users/44f6142df96bd6ab61e7521d9`.
  must(/^\/Users\/[^/?#\s]+$/u.test(String(subject?.["uri"])), "sub_id names no user by its path")
  must(isText(subject?.["externalId"]) || !("externalId" in (subject ?? {})), "externalId is empty")
  const events = Object.entries((claims["events"] ?? {}) as Readonly<Record<string, Readonly<Record<string, unknown>>>>)
  must(events.length === 1, "events has not one event")
  for (const [uri, event] of events) {
    const name = uri.startsWith("urn:ietf:params:scim:event:") ? uri.slice("urn:ietf:params:scim:event:".length) : ""
    const known = [...feed, ...bare, ...full, ...notices].includes(name)
    must(known, `${uri} is no event of RFC 9967`)
    if (feed.includes(name) || bare.includes(name)) must(Object.keys(event).length === 0, `${name} has members`)
    if (full.includes(name)) must("data" in event && !("attributes" in event), `${name} is not full`)
    if (notices.includes(name)) {
      const attributes = event["attributes"]
      must(Array.isArray(attributes) && attributes.every(isText) && !("data" in event), `${name} is no notice`)
    }
  }
  return faults
}
