/** The two steps of a credential action. An action that this session starts is completed by this session alone. */
import { ask } from "../contract/Ask.ts"
import type { AnswerOf, RequestOf } from "../contract/EndpointTypes.ts"
import { session } from "../Visitor.ts"

export type Starting = RequestOf<"startCredentialAction">["payload"]
export type Started = AnswerOf<"startCredentialAction">
export type Finished = AnswerOf<"completeCredentialAction">
type Proof = RequestOf<"completeCredentialAction">["payload"]["proof"]

const bound = () => {
  const id = session.value?.session?.id
  return id === undefined ? {} : { "x-portal-binding": id }
}

/**
 * Starts an action. Without an idempotency key: a repeated start takes the place of the first one, and the answer of a
 * replay would have no secret.
 */
export const start = (payload: Starting): Promise<Started> =>
  ask("startCredentialAction", { headers: bound(), payload })

export const complete = (intent_id: string, proof: Proof): Promise<Finished> =>
  ask("completeCredentialAction", { headers: bound(), params: { intent_id }, payload: { proof } })

/** Takes an action whose proof is the press of a button. */
export const confirm = async (payload: Starting): Promise<Finished> => {
  const { intent_id } = await start(payload)
  return await complete(intent_id, { type: "confirm", acknowledged: true })
}

/** The typed label, or null, which leaves the label to the server. */
export const labelOf = (typed: string): string | null => typed.trim() === "" ? null : typed.trim()
