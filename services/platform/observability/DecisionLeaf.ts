/**
 * The leaf of a decision in the transparency log: a digest that commits to the decision's audit record and reveals
 * nothing of it. The salt is kept beside it, so that the record can be shown to fit the leaf later, to its readers.
 */
import { randomBytes } from "node:crypto"
import { digestOf } from "../security/CanonicalJson.ts"
import type { AuditRecord } from "./AuditRecord.ts"

/** An audit record as it is proved: its time as text, in milliseconds. */
export type EvidenceRecord = Omit<AuditRecord, "at"> & { readonly at: string }

const saltBytes = 16
const scheme = "sha256:"

/** The log's entry for a record: the 32 bytes of SHA-256 over the canonical JSON of `{record, salt}` (RFC 8785). */
export const entryOf = (record: EvidenceRecord, salt: Uint8Array): Uint8Array =>
  Buffer.from(digestOf({ record, salt: Buffer.from(salt).toString("base64") }).slice(scheme.length), "hex")

/** The row of a new leaf, with bytes as PostgreSQL reads them. */
export const leafOf = (record: EvidenceRecord) => {
  const salt = randomBytes(saltBytes)
  const bytea = (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`
  return { record_id: record.id, decided_at: record.at, salt: bytea(salt), digest: bytea(entryOf(record, salt)) }
}
