/** The person's own account: profile, identities, mails, authenticators, sessions, and the changes that they can make. */
import type { JSX } from "preact"
import { Authenticators } from "../account/Authenticators.tsx"
import { Capabilities, SignInFirst } from "../account/Capabilities.tsx"
import { Notices } from "../account/Notices.tsx"
import { Identities, Profile } from "../account/Profile.tsx"
import { Sessions } from "../account/Sessions.tsx"
import { ask } from "../contract/Ask.ts"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { useResource } from "../Resource.ts"
import { auditing } from "../Visitor.ts"

const Account = (): JSX.Element => {
  const me = useResource("me", (signal) => ask("me", {}, { signal }))
  const owned = useResource("authenticators", (signal) => ask("listAuthenticators", {}, { signal }))
  const able = useResource("capabilities", (signal) => ask("credentialCapabilities", {}, { signal }))
  const sessions = useResource("own sessions", (signal) => ask("listSessions", {}, { signal }))
  const changed = async () => void await Promise.all([owned.reload(), able.reload()])
  const actions = able.value.value?.actions
  return (
    <Page title="My account">
      <Failure of={able.failure} retry={able.reload} />
      {actions === undefined || auditing.value ? null : <SignInFirst of={actions} />}
      <Failure of={me.failure} retry={me.reload} />
      {me.value.value === undefined ? null : <Profile of={me.value.value} />}
      {me.value.value === undefined ? null : <Identities of={me.value.value} />}
      {me.value.value === undefined || auditing.value ? null : <Notices mailed={me.value.value.email_verified} />}
      <Failure of={owned.failure} retry={owned.reload} />
      {owned.value.value === undefined || actions === undefined ? null : (
        <Authenticators
          of={owned.value.value.items}
          capabilities={actions}
          done={changed}
          oneFactor={able.value.value?.second_factor === false}
        />
      )}
      <Failure of={sessions.failure} retry={sessions.reload} />
      {sessions.value.value === undefined ? null : <Sessions of={sessions.value.value.items} done={sessions.reload} />}
      {actions === undefined || auditing.value ? null : <Capabilities of={actions} />}
    </Page>
  )
}
export default Account
