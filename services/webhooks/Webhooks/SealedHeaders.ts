/** The headers and credentials in the sealed columns of a webhook. */
import { Buffer } from "node:buffer"
import type { BasicAuth, CustomHeader } from "../../../schemas/mail/WebhookHeaders.ts"

/** The columns of `webhooks` that the Vault seals. */
export type SealedColumn = "secret" | "old_secret" | "headers" | "basic_auth"

/** The custom headers in an opened text, which `JSON.stringify` made of what the contract decoded. */
export const readHeaders = (opened: string): ReadonlyArray<CustomHeader> => JSON.parse(opened)

/** The value of `Authorization` (RFC 7617, section 2, in UTF-8) for opened credentials. */
export const basicOf = (opened: string): string => {
  const { password, username }: BasicAuth = JSON.parse(opened)
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
}
