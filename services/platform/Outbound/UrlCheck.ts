/** Checks a user's URL before it is stored. Names are not resolved here. */
import { Result } from "effect"
import { type AddressPolicy, isLocalhost, literalOf, loopback } from "./AddressPolicy.ts"

/** `message`: one sentence for the user. It reveals nothing but what the URL itself shows. */
export interface UrlRefusal {
  readonly code: "url_invalid" | "url_too_long" | "url_scheme" | "url_userinfo" | "url_port" | "url_address"
  readonly message: string
}

const refuse = (code: UrlRefusal["code"], message: string): Result.Result<URL, UrlRefusal> =>
  Result.fail({ code, message })

const maxCharacters = 2048
const beginning = /^https?:\/\/[^\s/\\?#]/i

/** The port that this URL names, or its scheme's default. */
export const portOf = (url: URL): number => url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)

/**
 * Checks a URL: https (or http to a literal or `localhost` in a range that the operator allowed), at most 2048
 * characters, no userinfo, an allowed port, no literal outside the policy. Gives the parsed URL.
 */
export const checkUrl = (text: string, policy: AddressPolicy): Result.Result<URL, UrlRefusal> => {
  // A code point takes at most two UTF-16 units, so only few texts need counting.
  if (text.length > maxCharacters && (text.length > 2 * maxCharacters || [...text].length > maxCharacters)) {
    return refuse("url_too_long", `URL should have at most ${maxCharacters} characters.`)
  }
  const url = URL.parse(text)
  if (url === null) {
    return refuse(
      "url_invalid",
      beginning.test(text)
        ? "URL should have a valid host, and a port of at most 65535 if it names one."
        : "URL should begin with https:// and a host.",
    )
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return refuse("url_scheme", "URL scheme should be https.")
  // The parser reads `https:///x` and `https:x` as `https://x/`.
  if (!beginning.test(text) || /^\.+$/.test(url.hostname)) {
    return refuse("url_invalid", "URL should begin with https:// and a host.")
  }
  if (url.username !== "" || url.password !== "") {
    return refuse("url_userinfo", "URL should not hold a user name or a password.")
  }

  const literal = literalOf(url.hostname)
  const local = isLocalhost(url.hostname)
  if ((literal !== null && !policy.allows(literal)) || (local && !loopback.some(policy.allows))) {
    return refuse("url_address", "URL should not name an address that is private, reserved or local.")
  }
  if (url.protocol === "http:") {
    const httpAllowed = literal !== null
      ? policy.allowsHttp(literal)
      : /^localhost\.*$/.test(url.hostname) && loopback.some(policy.allowsHttp)
    if (!httpAllowed) return refuse("url_scheme", "URL scheme should be https.")
  }
  if (!policy.allowsPort(portOf(url), url.protocol)) return refuse("url_port", "URL should not name this port.")
  return Result.succeed(url)
}
