/** The state of a transfer, in words that both sides understand. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "./Badge.tsx"

export type Transfer = AnswerOf<"getTransfer">

const words: Readonly<Record<Transfer["status"], readonly [tone: Tone, words: string]>> = {
  pending: ["wait", "waits for an answer"],
  accepted: ["warn", "in its safety window"],
  completed: ["good", "completed"],
  declined: ["off", "declined"],
  cancelled: ["off", "taken back"],
  reversed: ["bad", "stopped"],
  expired: ["off", "expired"],
}

export const TransferState = ({ of }: { readonly of: Transfer["status"] }): JSX.Element => {
  const [tone, text] = words[of]
  return <Badge tone={tone}>{text}</Badge>
}
