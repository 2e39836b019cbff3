/** The announcement of an outcome, for eyes and for screen readers. */
import { signal } from "@preact/signals"
import type { JSX } from "preact"

const said = signal("")
let timer: ReturnType<typeof setTimeout> | undefined

/** Says it politely, and shows it for some seconds. */
export const announce = (text: string): void => {
  clearTimeout(timer)
  said.value = text
  timer = setTimeout(() => {
    said.value = ""
  }, 8_000)
}

export const Announcements = (): JSX.Element => <div class="said" role="status" aria-live="polite">{said}</div>
