/** The address of a server, for messages: without credentials. */
import { Redacted } from "effect"

/** Host, port and database of a URL, without its credentials. */
export const addressOf = (url: Redacted.Redacted): string => {
  const parsed = URL.parse(Redacted.value(url).split(",")[0] ?? "")
  return parsed === null ? "an address that is no URL" : `${parsed.host}${parsed.pathname.replace(/^\/$/, "")}`
}
