/**
 * The key by which an accepted event is recognised, made from its account and id alone: an id that comes again is the
 * same event, whatever its other fields. The key begins with the time in a UUIDv7 or ULID, so that events of one time
 * are stored together; for other ids it begins with zeros.
 */
import { hash } from "node:crypto"
import type { AccountId, SourceEventId } from "../../../schemas/BrandedIds.ts"
import { millisOf } from "../../platform/Ids.ts"

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** The time in an id, in milliseconds since the epoch, or 0. */
export const timeOf = (id: string): number => {
  if (uuidV7.test(id)) return millisOf(id)
  if (!ulid.test(id)) return 0
  return [...id.slice(0, 10).toUpperCase()].reduce((millis, digit) => millis * 32 + digits.indexOf(digit), 0)
}

export interface SeenKey {
  /** 48 bits of time and 80 of a digest, in hexadecimal. */
  readonly key: string
  /** The key in the older table `seen_events`: 128 bits of the digest. */
  readonly before: string
}

export const seenKeyOf = (accountId: AccountId, id: SourceEventId): SeenKey => {
  const digest = hash("sha256", `${accountId}.${id}`, "hex")
  const time = timeOf(id).toString(16).padStart(12, "0")
  return { key: `${time}${digest.slice(0, 20)}`, before: digest.slice(0, 32) }
}
