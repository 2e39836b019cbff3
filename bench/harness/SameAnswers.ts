/** Holds that the contenders of a read give the same answer. */
import { Effect } from "effect"
import { BenchError } from "./Child.ts"

const isBranch = (value: unknown): value is object => typeof value === "object" && value !== null

/** The first place where two JSON values differ, as a JSON pointer (RFC 6901) with both values; null if they are equal. */
export const difference = (one: unknown, other: unknown, at = ""): string | null => {
  if (Object.is(one, other)) return null
  if (!isBranch(one) || !isBranch(other) || Array.isArray(one) !== Array.isArray(other)) {
    return `${at === "" ? "the whole" : at}: ${JSON.stringify(one)} and ${JSON.stringify(other)}`.slice(0, 1_000)
  }
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = difference(Reflect.get(one, key), Reflect.get(other, key), `${at}/${key}`)
    if (found !== null) return found
  }
  return null
}

/** Fails where an answer differs from the first one, with the first difference. */
export const sameAnswers = (path: string, [first, ...others]: ReadonlyArray<unknown>) =>
  Effect.forEach(others, (other) => {
    const found = difference(first, other)
    return found === null
      ? Effect.void
      : Effect.fail(new BenchError({ message: `the answers to ${path} differ at ${found}` }))
  }, { discard: true })
