/** Native modal dialogs: the browser keeps the focus inside, closes by Escape, and gives the focus back. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren, JSX } from "preact"
import { useId, useLayoutEffect, useRef } from "preact/hooks"
import { waits } from "../Drafts.ts"
import { auditing, readOnly } from "../Visitor.ts"

export const Dialog = ({ children, close, open, title }: {
  readonly open: boolean
  readonly close: () => void
  readonly title: string
  readonly children: ComponentChildren
}): JSX.Element => {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useLayoutEffect(() => {
    const { current } = dialog
    if (open && current?.open === false) current.showModal()
    if (!open && current?.open === true) current.close()
  }, [open])
  return (
    <dialog ref={dialog} aria-labelledby={heading} onClose={close}>
      {open
        ? (
          <>
            <h2 id={heading}>{title}</h2>
            {children}
          </>
        )
        : <h2 id={heading}>{title}</h2>}
    </dialog>
  )
}

export const readOnlyReason = "This console may only read (CONSOLE=read)."

/** A button that opens a dialog with a form; the form begins anew each time, or with the draft that waits for it. */
export const DialogButton = ({ children, kind = "", label, name, reads = false, refused = null, title }: {
  /** The name of the form's draft. */
  readonly name: string
  readonly label: string
  readonly title: string
  readonly kind?: "" | "main" | "stop"
  /** Whether the dialog changes nothing: a console that may only read has it, too. */
  readonly reads?: boolean
  /** Why it would be refused: the button is off then. */
  readonly refused?: string | null
  readonly children: (close: () => void) => ComponentChildren
}): JSX.Element | null => {
  const open = useSignal(waits(name))
  const reason = readOnly.value && !reads ? readOnlyReason : refused
  const close = () => {
    open.value = false
  }
  if (auditing.value && !reads) return null
  return (
    <>
      <button
        type="button"
        class={kind}
        disabled={reason !== null}
        title={reason ?? undefined}
        onClick={() => {
          open.value = true
        }}
      >
        {label}
      </button>
      <Dialog open={open.value} close={close} title={title}>{open.value ? children(close) : null}</Dialog>
    </>
  )
}
