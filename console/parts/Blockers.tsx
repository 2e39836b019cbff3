/** The obstacles to an offer of a domain, as a refusal lists them. */
import type { JSX } from "preact"
import type { Refused } from "../contract/Ask.ts"
import { When } from "./When.tsx"

interface Blocker {
  readonly kind: "broadcast" | "scheduled_email"
  readonly id: string
  readonly name: string
  readonly status: "scheduled" | "sending"
  readonly scheduled_at: string | null
}

const kinds = { broadcast: "Broadcast", scheduled_email: "Scheduled email" } as const

export const Blockers = ({ of }: { readonly of: Refused | null }): JSX.Element | null => {
  const blockers = of?.members["blockers"] as ReadonlyArray<Blocker> | undefined
  return blockers === undefined ? null : (
    <ul>
      {blockers.map(({ id, kind, name, scheduled_at, status }) => (
        <li key={id}>
          {kinds[kind]} “{name}” {status === "sending" ? "is being sent" : (
            <>
              is to be sent <When at={scheduled_at} never="later" />
            </>
          )}
        </li>
      ))}
    </ul>
  )
}
