/** Text to copy: an id, a command, a secret that is shown once. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
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
