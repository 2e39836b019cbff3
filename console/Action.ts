/**
 * A write: whether it runs, its refusal, and the step-up that a refusal may ask for. Each try of one write has the same
 * idempotency key, until one succeeds: where an answer is lost, a second press does nothing anew.
 */
import { type Signal, signal } from "@preact/signals"
import { useMemo } from "preact/hooks"
import type { Refused } from "./contract/Ask.ts"
import { onRefusal, refusalOf } from "./Resource.ts"

export interface Action {
  readonly busy: Signal<boolean>
  readonly failure: Signal<Refused | null>
  /**
   * Runs it, unless it runs already; true where it succeeded. `key` is for a write that has no form: a form has the key of
   * its draft, which outlives a step-up.
   */
  readonly run: (write: (key: string) => Promise<unknown>) => Promise<boolean>
}

const make = (): Action => {
  const busy = signal(false)
  const failure = signal<Refused | null>(null)
  let key: string | undefined
  return {
    busy,
    failure,
    run: async (write) => {
      if (busy.value) return false
      busy.value = true
      failure.value = null
      try {
        key ??= crypto.randomUUID()
        await write(key)
        key = undefined
        return true
      } catch (cause) {
        failure.value = refusalOf(cause)
        onRefusal.see(failure.value)
        return false
      } finally {
        busy.value = false
      }
    },
  }
}

export const useAction = (): Action => useMemo(make, [])
