/**
 * Whether a request that carries a cookie may change anything (docs/api/mail.md). A browser says where a request
 * comes from, in `Origin` or `Sec-Fetch-Site`; a client that says neither is none, unless it sends what a plain form
 * could: a body that is not JSON.
 */
import type { Headers } from "effect/http"

const safe = new Set(["GET", "HEAD", "OPTIONS", "TRACE"])
const ownSites = new Set(["same-origin", "none"])

const hostOf = (origin: string): string | undefined => {
  const url = URL.parse(origin)
  return url !== null && url.origin === origin.toLowerCase() && /^https?:$/.test(url.protocol) ? url.host : undefined
}

/** A Host header's name and port as an origin would write them, the scheme's own port left out. */
const namesHost = (host: string | undefined, origin: string): boolean =>
  host !== undefined && URL.parse(`${new URL(origin).protocol}//${host}`)?.host === hostOf(origin)

const isOwn = (origin: string, publicUrl: URL, host: string | undefined): boolean =>
  hostOf(origin) !== undefined && (origin.toLowerCase() === publicUrl.origin || namesHost(host, origin))

const couldBeAForm = (headers: Headers.Headers): boolean => {
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase()
  return hasBody && type !== "application/json"
}

/** True where a request of this method and these headers is ours to serve; `publicUrl` is where we are reached. */
export const passesCsrf = (
  { method, headers }: { readonly method: string; readonly headers: Headers.Headers },
  publicUrl: URL,
): boolean => {
  if (safe.has(method)) return true
  const { origin, "sec-fetch-site": site, host } = headers
  if (origin === undefined && site === undefined) return !couldBeAForm(headers)
  return (origin === undefined || isOwn(origin, publicUrl, host)) && (site === undefined || ownSites.has(site))
}
