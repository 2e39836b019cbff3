/** Whether a domain is verified, and since when. */
import type { JSX } from "preact"
import { Badge } from "./Badge.tsx"
import { When } from "./When.tsx"

export const VerifiedState = ({ at }: { readonly at: string | null }): JSX.Element =>
  at === null ? <Badge tone="warn">not verified</Badge> : (
    <>
      <Badge tone="good">verified</Badge> <When at={at} />
    </>
  )
