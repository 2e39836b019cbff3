/** Subject patterns of NATS: `*` stands for one token, a `>` at the end for one or more. */
import { BusStreams, type StreamName, streamNames } from "./BusStreams.ts"

const token = /^[A-Za-z0-9_~-]{1,128}$/

/** Whether this can be subscribed to. */
export const isPattern = (text: string): boolean => {
  const tokens = text.split(".")
  return text.length <= 1024 &&
    tokens.every((part, i) => part === "*" || (part === ">" && i === tokens.length - 1) || token.test(part))
}

/** Whether every subject that matches `inner` (which may be a single subject) matches `pattern`. */
export const covers = (pattern: string, inner: string): boolean => {
  const [outer, given] = [pattern.split("."), inner.split(".")]
  return (outer.at(-1) === ">" ? given.length >= outer.length : given.length === outer.length) &&
    outer.every((part, i) => part === ">" || part === given[i] || (part === "*" && given[i] !== ">"))
}

/** Whether some subject matches both patterns. */
export const overlaps = (one: string, other: string): boolean => {
  const [a, b] = [one.split("."), other.split(".")]
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [x, y] = [a[i], b[i]]
    if (x === undefined || y === undefined) return false
    if (x === ">" || y === ">") return true
    if (x !== y && x !== "*" && y !== "*") return false
  }
  return true
}

export interface Followed {
  readonly stream: StreamName
  /** A filter within the stream's subjects; null: all of them. */
  readonly filter: string | null
}

/** The streams that may hold these subjects. The broker takes a filter only within one of a stream's own subjects. */
export const followedBy = (wanted: string): ReadonlyArray<Followed> =>
  streamNames.filter((stream) => BusStreams[stream].subjects.some((own) => overlaps(own, wanted))).map((stream) => ({
    stream,
    filter: BusStreams[stream].subjects.some((own) => covers(own, wanted)) ? wanted : null,
  }))
