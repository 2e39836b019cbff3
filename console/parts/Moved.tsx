/** A decision on something that another one has changed meanwhile: what was on screen, beside what is now. */
import type { ComponentChildren, JSX } from "preact"
import { useEffect } from "preact/hooks"
import type { Action } from "../Action.ts"
import { useResource } from "../Resource.ts"
import { Difference, type Facts } from "./Difference.tsx"
import { Failure } from "./Failure.tsx"

/**
 * Whether the write was refused because its object had changed. The object is read anew once the dialog closes: read
 * sooner, it would take the dialog and its words away.
 */
export const useMoved = (
  { failure }: Action,
  codes: ReadonlyArray<"invalid_state" | "precondition_failed" | "version_conflict">,
  done: () => unknown,
): boolean => {
  const moved = codes.some((one) => one === failure.value?.code)
  useEffect(() => moved ? () => void done() : undefined, [moved])
  return moved
}

export const Moved = <A,>({ before, children, facts, read, thing, version }: {
  /** What it is: `review`. */
  readonly thing: string
  /** What was on screen, and its version, which no other one has. */
  readonly before: A
  readonly version: string
  /** Asks for what is now. */
  readonly read: (signal: AbortSignal) => Promise<A>
  /** What a decider compares, in words. */
  readonly facts: (of: A) => Facts
  readonly children?: ComponentChildren
}): JSX.Element => {
  const current = useResource(`${thing} now, once ${version}`, read)
  return (
    <div class="moved">
      <p class="fault">
        The {thing} has changed since you opened this. Close it, look at the {thing} again, then decide.
      </p>
      <Failure of={current.failure} retry={current.reload} />
      {current.value.value === undefined
        ? null
        : <Difference before={facts(before)} now={facts(current.value.value)} />}
      {children}
    </div>
  )
}
