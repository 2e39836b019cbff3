/**
 * The dialog for a refusal that a sign-in would lift: the session has ended, or the action needs a fresher or stronger
 * sign-in (RFC 9470). The typed text waits in the tab until the return. A person may sign in at any issuer that names
 * them; the issuer of the session comes first.
 */
import { signal } from "@preact/signals"
import type { JSX } from "preact"
import { ask, type Refused } from "./contract/Ask.ts"
import { embedded } from "./Location.ts"
import { keepDrafts } from "./Drafts.ts"
import { Dialog } from "./parts/Dialog.tsx"
import { asksSignIn, endsSession } from "./parts/Failure.tsx"
import { onRefusal, useResource } from "./Resource.ts"
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

type Issuer = NonNullable<typeof session.value>["issuers"][number]

/** The other issuers of the console that name the person. */
const useOtherIssuers = (): ReadonlyArray<Issuer> => {
  const { issuers = [], person = null, session: own = null } = session.value ?? {}
  const others = issuers.filter(({ issuer }) => issuer !== own?.issuer)
  const asked = person !== null && others.length > 0
  const me = useResource(
    `step-up identities ${person?.person_id} ${asked}`,
    async (signal) => asked ? await ask("me", {}, { signal }) : null,
  )
  const known = new Set([
    me.value.value?.issuer,
    ...me.value.value?.linked_identities.map(({ issuer }) => issuer) ?? [],
  ])
  return others.filter(({ issuer }) => known.has(issuer))
}

const Ways = ({ refused }: { readonly refused: Refused }): JSX.Element => {
  const others = useOtherIssuers()
  const more = moreOf(refused)
  return (
    <>
      <p>
        {refused.members["acr_values"] === undefined
          ? "Your last sign-in was too long ago for this."
          : "This needs a stronger sign-in: with a second factor, such as a passkey or a code."}{" "}
        What you typed is kept, and you come back to this page. Then press the button again.
      </p>
      <div class="actions">
        <a
          class="button main"
          href={signInAddress(session.value?.session?.issuer ?? null, more)}
          onClick={keepDrafts}
        >
          Sign in again
        </a>
        {others.map(({ issuer, name }) => (
          <a key={issuer} class="button" href={signInAddress(issuer, more)} onClick={keepDrafts}>
            Sign in with {name}
          </a>
        ))}
        <button type="button" onClick={close}>Not now</button>
      </div>
    </>
  )
}

export const StepUp = (): JSX.Element => {
  const refused = challenge.value
  return (
    <Dialog open={refused !== null} close={close} title="Sign in again to continue">
      {refused === null ? null : <Ways refused={refused} />}
    </Dialog>
  )
}
