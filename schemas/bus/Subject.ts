/**
 * Makes subjects of ids; ids become part of a subject in no other way. An id from outside may hold dots, wildcards,
 * blanks or thousands of characters; a subject with those looks like a dead broker at best and closes the shared
 * connection at worst.
 */
import { createHash } from "node:crypto"

const plain = /^[A-Za-z0-9_-]{1,128}$/
const token = /^[A-Za-z0-9_~-]{1,128}$/

/** The longest subject to publish to: the broker's control line holds 4,096 bytes, most of them for other parts. */
const maxLength = 1024

export const Subject = {
  /** `id` itself where it is made of `A-Za-z0-9_-`, else `~` and 20 characters of its SHA-256 (15 bytes, base64url). */
  token: (id: string): string =>
    plain.test(id) ? id : `~${createHash("sha256").update(id).digest().subarray(0, 15).toString("base64url")}`,

  /** Whether `subject` may be published to: dot-separated tokens of our alphabet, no wildcard, of sane length. */
  isSubject: (subject: string): boolean =>
    subject.length <= maxLength && subject.split(".").every((t) => token.test(t)),
} as const
