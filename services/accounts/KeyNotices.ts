/**
 * The notices to an account when one of its keys is created or revoked. They name the key by its public prefix; the
 * key's name is the person's own text and is not published.
 */
import { Effect } from "effect"
import type { AccountId } from "../../schemas/BrandedIds.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { appPath } from "../platform/AppPaths.ts"

/** Makes the two notices; each is called in the transaction of the change. */
export const keyNotices = Effect.map(Notifications, ({ announce }) => {
  const notice = (title: string, verb: string) => (accountId: AccountId, keyPrefix: string) =>
    announce({
      accountId,
      category: "alerts",
      severity: "info",
      title,
      body: `The API key mail_k_${keyPrefix}… was ${verb}.`,
      href: appPath("apiKeys", {}),
    })
  return { created: notice("API key created", "created"), revoked: notice("API key revoked", "revoked") }
})
