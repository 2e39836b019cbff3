/**
 * How a batch of lines is cut into transactions. Lines of kinds without a history go together in any order, since each
 * id ends at its highest version; where a version leaves a trace beyond its row (`Kind.traced`), a run ends before the
 * next one of its id. Those of kinds with a history are told on as they come, so a run ends where the next of them would
 * have to be applied before one that stands in front of it.
 */
import { Result } from "effect"
import type { Kind } from "./Kind.ts"
import type { Line, Rejection } from "./Lines.ts"

/** A line that was read, or why it could not be. */
export type Read = Result.Result<Line, Rejection>

/** The lines of one kind, with their places in the batch. */
export const linesOf = (batch: ReadonlyArray<Read>, kind: Kind): ReadonlyArray<{ at: number; line: Line }> =>
  batch.flatMap((read, at) => Result.isSuccess(read) && read.success.kind === kind ? [{ at, line: read.success }] : [])

/** Cuts a batch where applying kind by kind, in the order of `kinds`, would reorder histories or pass over a trace. */
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

/** Cuts a run so that lines of these ids stand alone. */
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
