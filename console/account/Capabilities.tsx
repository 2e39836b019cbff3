/** The changes that the person cannot make now, and the sign-in that others need. */
import type { JSX } from "preact"
import { Badge } from "../parts/Badge.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { session, signInAddress } from "../Visitor.ts"
import { type Capability, reasons } from "./Authenticators.tsx"
import { withoutPasskeys } from "./RegisterPasskey.tsx"

const words: Readonly<Record<Capability["kind"], string>> = {
  "passkey.register": "Register a passkey",
  "passkey.remove": "Remove a passkey",
  "totp.enroll": "Enrol an app",
  "totp.remove": "Remove an app",
  "recovery_codes.generate": "Make recovery codes",
  "authenticator.rename": "Rename an authenticator",
  "session.revoke": "End a session",
  "sessions.revoke_others": "End all other sessions",
}

/** Why a change cannot be made, in words; null: it can. */
const refusalOf = ({ kind, unavailable_reason: reason }: Capability): string | null => {
  const here = kind === "passkey.register" ? withoutPasskeys() : null
  return here ?? (reason === null ? null : reasons[reason] ?? reason)
}

const Readiness = ({ of }: { readonly of: Capability }): JSX.Element => {
  const refusal = refusalOf(of)
  if (refusal === null) {
    return <Badge tone="wait">after a fresh sign-in</Badge>
  }
  return (
    <>
      <Badge tone="off">not possible</Badge> <span class="note">{refusal}</span>
    </>
  )
}

/** The link to the sign-in that the changes of this page need; nothing where the present one suffices. */
export const SignInFirst = ({ of }: { readonly of: ReadonlyArray<Capability> }): JSX.Element | null => {
  const wanting = of.find(({ satisfied }) => !satisfied)
  if (wanting === undefined) return null
  const { acr_values: levels, max_age_seconds: age } = wanting
  const more = { ...(levels.length === 0 ? {} : { acr_values: levels.join(" ") }), max_age: String(age) }
  return (
    <p class="banner">
      Changes of this page need a sign-in of the last {Math.round(age / 60)}{" "}
      minutes{levels.length === 0 ? "" : " with a second factor"}.{" "}
      <a href={signInAddress(session.value?.session?.issuer ?? null, more)}>Sign in again</a>
    </p>
  )
}

export const Capabilities = ({ of }: { readonly of: ReadonlyArray<Capability> }): JSX.Element => (
  <section aria-labelledby="capabilities">
    <h2 id="capabilities">What you can change</h2>
    <p class="note">
      Signed in <When at={session.value?.session?.authenticated_at ?? null} never="at an unknown time" />
      {session.value?.person?.aal === "aal2" ? ", with a second factor" : ""}.
    </p>
    <Table
      caption="Changes of your credentials and sessions that are not possible now"
      rows={of.filter((one) => !one.satisfied || refusalOf(one) !== null)}
      keyOf={({ kind }) => kind}
      empty="Everything on this page can be changed now."
      columns={[
        { head: "Change", cell: ({ kind }) => words[kind] },
        { head: "Now", cell: (one) => <Readiness of={one} /> },
      ]}
    />
  </section>
)
