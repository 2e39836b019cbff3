/**
 * Cuts a batch of lines into runs, which are transactions. Lines of kinds without a history go together in any order,
 * since each id ends at its highest version; where each version has an effect of its own (`Kind.traced`), a run ends
 * before the next line of the same id. Lines of kinds with a history keep their order, so a run ends where applying
 * kind by kind would move a line before an earlier one.
 */
import { Result } from "effect"
import type { Kind } from "./Kind.ts"
import type { Line, Rejection } from "./Lines.ts"

/** A line that was read, or the reason why it could not be. */
export type Read = Result.Result<Line, Rejection>

/** The lines of one kind, with their indexes in the batch. */
export const linesOf = (batch: ReadonlyArray<Read>, kind: Kind): ReadonlyArray<{ at: number; line: Line }> =>
  batch.flatMap((read, at) => Result.isSuccess(read) && read.success.kind === kind ? [{ at, line: read.success }] : [])

/**
 * Cuts a batch where applying it kind by kind, in the order of `kinds`, would reorder a history or skip a traced
 * version.
 */
export const runsOf = (batch: ReadonlyArray<Read>, kinds: ReadonlyArray<Kind>): ReadonlyArray<ReadonlyArray<Read>> => {
  const runs: Array<Array<Read>> = [[]]
  let last = -1
  let traced = new Set<string>()
  for (const read of batch) {
    const history = Result.isSuccess(read) && read.success.kind.history !== undefined
    const at = history ? kinds.indexOf(read.success.kind) : last
    const trace = Result.isSuccess(read) && read.success.kind.traced === true
      ? `${read.success.kind.kind} ${read.success.id}`
      : null
    if (at < last || trace !== null && traced.has(trace)) {
      runs.push([])
      traced = new Set()
    }
    if (trace !== null) traced.add(trace)
    runs.at(-1)!.push(read)
    last = at
  }
  return runs
}

/** Cuts a run so that each line for which `alone` holds is a part of its own. */
export const aloneIn = (
  run: ReadonlyArray<Read>,
  alone: (line: Line) => boolean,
): ReadonlyArray<ReadonlyArray<Read>> => {
  const parts: Array<Array<Read>> = [[]]
  for (const read of run) {
    if (Result.isSuccess(read) && alone(read.success)) parts.push([read], [])
    else parts.at(-1)!.push(read)
  }
  return parts.filter((part) => part.length > 0)
}
