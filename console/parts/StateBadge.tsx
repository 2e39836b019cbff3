/** The state of a decision on Access, and of its delivery to the products: the same words on every screen. */
import type { JSX } from "preact"
import { Badge, type Tone } from "./Badge.tsx"
import { When } from "./When.tsx"

/** States as the pages say them. */
type States = Readonly<Record<string, readonly [tone: Tone, words: string]>>

export const decided: States = {
  proposed: ["wait", "proposed"],
  approved: ["good", "approved"],
  revoked: ["off", "revoked"],
}
export const delivered: States = {
  none: ["off", "nothing to deliver"],
  queued: ["wait", "queued"],
  delivered: ["good", "delivered"],
  failed: ["bad", "failed"],
  ambiguous: ["warn", "unknown"],
}
export const acknowledged: States = {
  none: ["off", "not asked for"],
  pending: ["wait", "waits"],
  acknowledged: ["good", "acknowledged"],
  rejected: ["bad", "rejected"],
}
export const effective: States = {
  effective: ["good", "in effect"],
  not_effective: ["off", "not in effect"],
  unknown: ["warn", "unknown"],
}
export const StateBadge = ({ at = null, of, states }: {
  readonly of: string
  readonly states: States
  readonly at?: string | null
}): JSX.Element => {
  const [tone, words] = states[of] ?? ["warn", of]
  return (
    <>
      <Badge tone={tone}>{words}</Badge>
      {at === null ? null : (
        <>
          {" "}
          <When at={at} />
        </>
      )}
    </>
  )
}
