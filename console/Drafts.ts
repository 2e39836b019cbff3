/**
 * The unsent text of a form, with the idempotency key that was made when the form opened. While the visitor signs in
 * again for a step-up, drafts wait in the tab's session storage, and the form opens with them after the return. Secrets
 * are never a draft.
 */
import { type Signal, signal } from "@preact/signals"
import { useEffect, useMemo } from "preact/hooks"
import { embedded } from "./Location.ts"

export interface Draft<A> {
  readonly value: Signal<A>
  /** Sent with each try of this form: a repeated try has one effect. */
  readonly key: string
  readonly set: (change: Partial<A>) => void
}

interface Kept {
  readonly key: string
  readonly value: unknown
}

const mounted = new Map<string, () => Kept>()
const drafts = "draft "
let own = drafts
const storageKey = (name: string) => `${own}${location.pathname} ${name}`

/** From now on drafts are this visitor's; those of any other are forgotten. */
export const draftsOf = (holder: string): void => {
  own = `${drafts}${holder} `
  if (embedded) return
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(drafts) && !key.startsWith(own)) sessionStorage.removeItem(key)
  }
}

const read = (name: string): Kept | null => {
  // In a frame the browser may refuse its storage, and nothing is kept there: no sign-in leaves the page.
  if (embedded) return null
  const text = sessionStorage.getItem(storageKey(name))
  return text === null ? null : JSON.parse(text) as Kept
}

/** Keeps the drafts of this page for the time of a sign-in. */
export const keepDrafts = (): void => {
  for (const [name, kept] of mounted) sessionStorage.setItem(storageKey(name), JSON.stringify(kept()))
}

/** Whether a draft of this form waits on this page. */
export const waits = (name: string): boolean => read(name) !== null

/** The draft of a form that is open; `name` is unique on its page. */
export const useDraft = <A extends object>(name: string, initial: A): Draft<A> => {
  const draft = useMemo((): Draft<A> => {
    const kept = read(name)
    if (!embedded) sessionStorage.removeItem(storageKey(name))
    const value = signal(kept === null ? initial : kept.value as A)
    return {
      value,
      key: kept?.key ?? crypto.randomUUID(),
      set: (change) => {
        value.value = { ...value.value, ...change }
      },
    }
  }, [name])
  useEffect(() => {
    mounted.set(name, () => ({ key: draft.key, value: draft.value.value }))
    return () => void mounted.delete(name)
  }, [draft])
  return draft
}
