/** URLs taken apart and judged once: the policy does not change while the process lives. */
import { Effect, Result } from "effect"
import { BoundedMap } from "../BoundedMap.ts"
import { counted } from "../MapSizes.ts"
import type { AddressPolicy } from "./AddressPolicy.ts"
import { checkUrl, portOf } from "./UrlCheck.ts"

export interface Target {
  readonly origin: string
  /** Path and query as they are sent. */
  readonly path: string
  /** `host:port`, lower case, without a dot at the end: the same for every way to write one destination. */
  readonly hostKey: string
  readonly allowed: boolean
}

const maxTargets = 8_192

const nowhere: Target = { origin: "", path: "", hostKey: "", allowed: false }

const withoutDots = (hostname: string): string => {
  let end = hostname.length
  while (hostname[end - 1] === ".") end--
  return hostname.slice(0, end)
}

/** Takes a URL apart without judging it. A dot at a name's end is left out: certificates and SNI do not know it. */
export const targetOf = (url: URL, allowed: boolean): Target => {
  const hostKey = `${withoutDots(url.hostname)}:${portOf(url)}`
  return { origin: `${url.protocol}//${hostKey}`, path: url.pathname + url.search, hostKey, allowed }
}

/** A bounded memory of judged URLs. */
export const make = Effect.fnUntraced(function* (policy: AddressPolicy) {
  const known = new BoundedMap<string, Target>(maxTargets)
  yield* counted("checked URLs", () => known.size)
  return (text: string): Target => {
    const found = known.get(text)
    if (found !== undefined) return found
    const url = URL.parse(text)
    const target = url === null ? nowhere : targetOf(url, Result.isSuccess(checkUrl(text, policy)))
    known.set(text, target)
    return target
  }
})
