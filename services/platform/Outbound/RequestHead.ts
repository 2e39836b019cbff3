/**
 * Writes the bytes of a POST. Only here does text of users become lines of a request. A text that could end a line, and
 * a header that could frame the request, are refused, and the request with them.
 *
 * So a hostile user can add neither a header nor a second request. A URL's path comes percent-encoded from the URL
 * parser and is checked once more; values may hold blanks, visible characters and latin-1 (RFC 9110, section 5.5).
 */
import { Buffer } from "node:buffer"

const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const ascii = /^[\t\x20-\x7e]*$/
const latin1 = /^[\t\x20-\x7e\x80-\xff]*$/
const target = /^\/[\x21-\x7e]*$/

/** Headers that callers may not set: they frame the request, name its receiver or control the connection. */
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

/** Header names that passed the check, as spelled: deliveries use the same dozen names all the time. */
const goodNames = new Set<string>()
const maxGoodNames = 64

const isGoodName = (text: string): boolean => {
  if (goodNames.has(text)) return true
  if (!name.test(text) || reserved.has(text.toLowerCase())) return false
  if (goodNames.size < maxGoodNames) goodNames.add(text)
  return true
}

/** Head and body of a POST, in one piece; null if the path or a header is not valid. `host` comes from a parsed URL. */
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
  // One write, and one string if possible: an ASCII head has the same bytes in UTF-8 and in latin-1.
  if (typeof body === "string" && plain) return head + body
  return Buffer.concat([Buffer.from(head, "latin1"), typeof body === "string" ? Buffer.from(body) : body])
}
