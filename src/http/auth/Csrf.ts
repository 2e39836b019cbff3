/**
 * CSRF protection for requests with a cookie (docs/api/mail.md). A browser states a request's source in `Origin` or
 * `Sec-Fetch-Site`. A client that sends neither is taken for no browser, unless its body could come from a plain form:
 * a body that is not JSON.
 */
import type { Headers } from "effect/http"

const safe = new Set(["GET", "HEAD", "OPTIONS", "TRACE"])
const ownSites = new Set(["same-origin", "none"])

const hostOf = (origin: string): string | undefined => {
  const url = URL.parse(origin)
  return url !== null && url.origin === origin.toLowerCase() && /^https?:$/.test(url.protocol) ? url.host : undefined
}

/** Whether a Host header has the name and port of an origin; the scheme's default port may be left out. */
const namesHost = (host: string | undefined, origin: string): boolean =>
  host !== undefined && URL.parse(`${new URL(origin).protocol}//${host}`)?.host === hostOf(origin)

const isOwn = (origin: string, publicUrl: URL, host: string | undefined): boolean =>
  hostOf(origin) !== undefined && (origin.toLowerCase() === publicUrl.origin || namesHost(host, origin))

const couldBeAForm = (headers: Headers.Headers): boolean => {
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase()
  return hasBody && type !== "application/json"
}

/** Whether a request with this method and these headers passes. `publicUrl` is the origin of this program. */
export const passesCsrf = (
  { method, headers }: { readonly method: string; readonly headers: Headers.Headers },
  publicUrl: URL,
): boolean => {
  if (safe.has(method)) return true
  const { origin, "sec-fetch-site": site, host } = headers
  if (origin === undefined && site === undefined) return !couldBeAForm(headers)
  return (origin === undefined || isOwn(origin, publicUrl, host)) && (site === undefined || ownSites.has(site))
}
