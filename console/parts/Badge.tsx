/** A state in words and a sign: never by its colour alone. */
import type { JSX } from "preact"

export type Tone = "good" | "bad" | "warn" | "wait" | "off"

const signs: Readonly<Record<Tone, string>> = { good: "✓", bad: "✕", warn: "!", wait: "…", off: "–" }

export const Badge = ({ children, tone }: { readonly tone: Tone; readonly children: string }): JSX.Element => (
  <span class={`badge ${tone}`}>
    <span aria-hidden="true">{signs[tone]}</span> {children}
  </span>
)
