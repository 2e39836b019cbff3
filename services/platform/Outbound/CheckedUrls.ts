/** Parsed and checked URLs, cached: the address policy does not change while the process runs. */
import { Effect, Result } from "effect"
import { BoundedMap } from "../BoundedMap.ts"
import { counted } from "../MapSizes.ts"
import type { AddressPolicy } from "./AddressPolicy.ts"
import { checkUrl, portOf } from "./UrlCheck.ts"

export interface Target {
  readonly origin: string
  /** Path and query, as the request sends them. */
  readonly path: string
  /** `host:port`, lower case, without a dot after the name: the same for every spelling of one destination. */
  readonly hostKey: string
  /** The URL passed `checkUrl`. */
  readonly allowed: boolean
}

const maxTargets = 8_192

/** Stands for a text that is not a URL. */
const invalid: Target = { origin: "", path: "", hostKey: "", allowed: false }

const withoutDots = (hostname: string): string => {
  let end = hostname.length
  while (hostname[end - 1] === ".") end--
  return hostname.slice(0, end)
}

/** The target of a URL, not checked. A dot after the name is removed, since certificates and SNI have none. */
export const targetOf = (url: URL, allowed: boolean): Target => {
  const hostKey = `${withoutDots(url.hostname)}:${portOf(url)}`
  return { origin: `${url.protocol}//${hostKey}`, path: url.pathname + url.search, hostKey, allowed }
}

/** A bounded cache: gives the checked target of a URL. */
export const make = Effect.fnUntraced(function* (policy: AddressPolicy) {
  const cache = new BoundedMap<string, Target>(maxTargets)
  yield* counted("checked URLs", () => cache.size)
  return (text: string): Target => {
    const cached = cache.get(text)
    if (cached !== undefined) return cached
    const url = URL.parse(text)
    const target = url === null ? invalid : targetOf(url, Result.isSuccess(checkUrl(text, policy)))
    cache.set(text, target)
    return target
  }
})
