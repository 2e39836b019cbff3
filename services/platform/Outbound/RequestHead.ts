/**
 * The bytes of a POST. The one place where foreign text becomes lines of a request: what could end a line, or frame the
 * request otherwise than its body does, makes no request at all.
 *
 * What a hostile user gains: neither a header nor a second request. A URL's path comes percent-encoded from the URL
 * parser and is checked once more; values may hold blanks, visible characters and latin-1 (RFC 9110, section 5.5).
 */
import { Buffer } from "node:buffer"

const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const ascii = /^[\t\x20-\x7e]*$/
const latin1 = /^[\t\x20-\x7e\x80-\xff]*$/
const target = /^\/[\x21-\x7e]*$/

/** They frame the request, name its receiver or belong to the connection, all of which is decided here. */
const reserved = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "proxy-connection",
  "upgrade",
  "te",
  "trailer",
  "expect",
  "accept-encoding",
])

/** Names that were found to be good, as they were written: deliveries use the same dozen again and again. */
const goodNames = new Set<string>()
const mostGoodNames = 64

const isGoodName = (text: string): boolean => {
  if (goodNames.has(text)) return true
  if (!name.test(text) || reserved.has(text.toLowerCase())) return false
  if (goodNames.size < mostGoodNames) goodNames.add(text)
  return true
}

/** A POST's head and body, in one piece; null where the path or a header is none. `host` comes from a parsed URL. */
export const requestOf = (
  host: string,
  path: string,
  headers: Readonly<Record<string, string>> | ReadonlyArray<string>,
  body: Uint8Array | string,
): string | Uint8Array | null => {
  if (!target.test(path)) return null
  let head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\naccept-encoding: identity\r\n`
  let plain = true
  const add = (key: string, value: string | undefined): boolean => {
    if (value === undefined || !isGoodName(key)) return false
    if (!ascii.test(value)) {
      if (!latin1.test(value)) return false
      plain = false
    }
    head += `${key}: ${value}\r\n`
    return true
  }
  if (Array.isArray(headers)) {
    for (let n = 0; n < headers.length; n += 2) if (!add(headers[n], headers[n + 1])) return null
  } else for (const [key, value] of Object.entries(headers)) if (!add(key, value)) return null
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length
  head += `content-length: ${length}\r\n\r\n`
  // One write and, where it can be, one string: as UTF-8 an ASCII head is what it is as latin-1.
  if (typeof body === "string" && plain) return head + body
  return Buffer.concat([Buffer.from(head, "latin1"), typeof body === "string" ? Buffer.from(body) : body])
}
