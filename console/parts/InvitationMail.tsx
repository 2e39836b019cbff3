/** The outcome of an invitation's mail. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "./Badge.tsx"

type State = AnswerOf<"listEnrollments">["items"][number]["delivery"]["state"]

const states: Readonly<Record<State, readonly [tone: Tone, words: string]>> = {
  none: ["off", "not sent"],
  queued: ["wait", "queued"],
  delivered: ["good", "delivered"],
  failed: ["bad", "failed"],
  ambiguous: ["warn", "unknown"],
}

export const InvitationMail = ({ of }: { readonly of: State }): JSX.Element => {
  const [tone, words] = states[of]
  return <Badge tone={tone}>{words}</Badge>
}
