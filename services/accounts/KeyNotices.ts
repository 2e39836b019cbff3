/**
 * What an account hears when one of its keys is made or ends. It names the key by its public prefix; its name is the
 * person's own text and stays off the bus.
 */
import { Effect } from "effect"
import { Notifications } from "../notifications/Notifications.ts"

/** Two notices, each for the transaction that did what it tells of. */
export const keyNotices = Effect.map(Notifications, ({ announce }) => {
  const notice = (title: string, verb: string) => (accountId: string, keyPrefix: string) =>
    announce({
      accountId,
      category: "alerts",
      severity: "info",
      title,
      body: `The API key mail_k_${keyPrefix}… was ${verb}.`,
      href: "/api-keys",
    })
  return { created: notice("API key created", "created"), revoked: notice("API key revoked", "revoked") }
})
