/**
 * A screen's read: the previous answer is shown at once while a new one is requested, and a request ends with the
 * screen that made it. The cache has a bound, so that looking around does not take memory without end.
 */
import { type Signal, signal } from "@preact/signals"
import { useEffect, useMemo } from "preact/hooks"
import { Refused } from "./contract/Ask.ts"

export interface Resource<A> {
  readonly key: string
  /** Undefined until the first answer. */
  readonly value: Signal<A | undefined>
  readonly failure: Signal<Refused | null>
  readonly loading: Signal<boolean>
  /** Asks again; what is shown stays until the answer. */
  readonly reload: () => Promise<void>
  /** Shows an answer that came by another way, in place of what is being asked. */
  readonly put: (answer: A) => void
}

/** How long a first answer, and a newer one, may take before the page says that it waits, in milliseconds. */
const slowAfter = { first: 2_000, newer: 10_000 }

/** Requests that have had no answer for long, with the way to ask again. */
export const slow = signal<ReadonlySet<() => unknown>>(new Set())

const setSlow = (reload: () => unknown, waits: boolean): void => {
  if (slow.value.has(reload) === waits) return
  const next = new Set(slow.value)
  if (waits) next.add(reload)
  else next.delete(reload)
  slow.value = next
}

type Ask<A> = (signal: AbortSignal) => Promise<A>

const most = 40
const answers = new Map<string, unknown>()

const keep = (key: string, answer: unknown): void => {
  answers.delete(key)
  answers.set(key, answer)
  for (const old of answers.keys()) {
    if (answers.size <= most) break
    answers.delete(old)
  }
}

/** Forgets every answer: another visitor, or a write that changes much. */
export const forgetAll = (): void => answers.clear()

/** Sees a refusal that ends the session; set by the shell. */
export const onRefusal: { see: (refused: Refused) => void } = { see: () => {} }

export const refusalOf = (cause: unknown): Refused =>
  cause instanceof Refused ? cause : new Refused("failed", 0, { detail: `This page failed: ${cause}` })

const make = <A>(key: string, asked: { current: Ask<A> }): Resource<A> & { readonly stop: () => void } => {
  const value = signal(answers.get(key) as A | undefined)
  const failure = signal<Refused | null>(null)
  const loading = signal(true)
  let running = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const ended = () => {
    clearTimeout(timer)
    setSlow(reload, false)
    loading.value = false
  }
  const reload = async () => {
    running.abort()
    const mine = running = new AbortController()
    loading.value = true
    clearTimeout(timer)
    timer = setTimeout(() => setSlow(reload, true), value.value === undefined ? slowAfter.first : slowAfter.newer)
    try {
      const answer = await asked.current(mine.signal)
      if (mine.signal.aborted) return
      keep(key, answer)
      value.value = answer
      failure.value = null
    } catch (cause) {
      if (mine.signal.aborted) return
      failure.value = refusalOf(cause)
      onRefusal.see(failure.value)
    }
    ended()
  }
  const put = (answer: A) => {
    running.abort()
    keep(key, answer)
    value.value = answer
    failure.value = null
    ended()
  }
  const stop = () => {
    running.abort()
    ended()
  }
  return { key, value, failure, loading, reload, put, stop }
}

/** The answer of `ask`, under a key that names its question: another key asks anew. */
export const useResource = <A>(key: string, ask: Ask<A>): Resource<A> => {
  const asked = useMemo(() => ({ current: ask }), [key])
  asked.current = ask
  const resource = useMemo(() => make(key, asked), [key])
  useEffect(() => {
    void resource.reload()
    return resource.stop
  }, [resource])
  return resource
}
