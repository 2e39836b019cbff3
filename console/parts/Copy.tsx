/** Text to copy: an id, a command, a secret that is shown once. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren, JSX } from "preact"
import { announce } from "./Announce.tsx"

/** A button that copies a text. */
export const CopyButton = ({ label = "Copy", text }: {
  readonly text: string
  readonly label?: string
}): JSX.Element => {
  const done = useSignal(false)
  return (
    <button
      type="button"
      class="small"
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(text)
        } catch {
          // A frame may write to the clipboard only where the page around it lets it.
          announce("This page may not copy: select the text instead.")
          return
        }
        done.value = true
        announce("Copied.")
      }}
    >
      {done.value ? "Copied" : label}
    </button>
  )
}

/** Says that a try whose answer was lost had made the thing: its secret is in no answer any more. */
export const MadeBefore = ({ button, children, close, what }: {
  /** The made thing, at the beginning of a sentence. */
  readonly what: string
  readonly close: () => void
  /** How to get another secret, and the button or link for it. */
  readonly children: ComponentChildren
  readonly button?: JSX.Element
}): JSX.Element => (
  <div class="once" role="status">
    <p>{what} was made by an earlier try, whose answer did not arrive.</p>
    {children}
    <div class="actions">
      {button}
      <button type="button" onClick={close}>Close</button>
    </div>
  </div>
)

/** A secret that is in no other answer, with the way to keep it. It lives in this component alone. */
export const ShownOnce = ({ close, secret, what }: {
  readonly what: string
  readonly secret: string
  readonly close: () => void
}): JSX.Element => (
  <div class="once">
    <p>Copy {what} now: this is shown once.</p>
    <p>
      <code class="secret">{secret}</code>
    </p>
    <div class="actions">
      <CopyButton text={secret} label={`Copy ${what}`} />
      <button type="button" class="main" onClick={close}>I have kept it</button>
    </div>
  </div>
)
