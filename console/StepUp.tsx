/**
 * The dialog for a refusal that a sign-in would lift: the session has ended, or the action needs a fresher or stronger
 * sign-in (RFC 9470). The typed text waits in the tab until the return.
 */
import { signal } from "@preact/signals"
import type { JSX } from "preact"
import type { Refused } from "./contract/Ask.ts"
import { embedded } from "./Location.ts"
import { keepDrafts } from "./Drafts.ts"
import { Dialog } from "./parts/Dialog.tsx"
import { asksSignIn, endsSession } from "./parts/Failure.tsx"
import { onRefusal } from "./Resource.ts"
import { embedEnded, loadSession, session, signInAddress } from "./Visitor.ts"

const challenge = signal<Refused | null>(null)

/** Watches every answer of the API. */
export const followRefusals = (): void => {
  onRefusal.see = (refused) => {
    if (asksSignIn(refused)) challenge.value = refused
    else if (endsSession(refused)) {
      if (embedded) embedEnded.value = true
      else void loadSession()
    }
  }
}

const moreOf = ({ members }: Refused): Readonly<Record<string, string>> => ({
  ...(typeof members["acr_values"] === "string" ? { acr_values: members["acr_values"] } : {}),
  ...(typeof members["max_age"] === "number" ? { max_age: String(members["max_age"]) } : {}),
})

const close = () => {
  challenge.value = null
}

export const StepUp = (): JSX.Element => {
  const refused = challenge.value
  const issuer = session.value?.session?.issuer ?? null
  return (
    <Dialog open={refused !== null} close={close} title="Sign in again to continue">
      <p>
        {refused?.members["acr_values"] === undefined
          ? "Your last sign-in was too long ago for this."
          : "This needs a stronger sign-in: with a second factor, such as a passkey or a code."}{" "}
        What you typed is kept, and you come back to this page. Then press the button again.
      </p>
      <div class="actions">
        <a
          class="button main"
          href={refused === null ? "#" : signInAddress(issuer, moreOf(refused))}
          onClick={keepDrafts}
        >
          Sign in again
        </a>
        <button type="button" onClick={close}>Not now</button>
      </div>
    </Dialog>
  )
}
