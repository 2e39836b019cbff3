/**
 * The state machine of a webhook, as a pure function: the service loads the webhook, calls it, and writes the result
 * under the version that it loaded. Commands do not find a deleted webhook.
 */
import type { EventType } from "../../../schemas/mail/MailEvent.ts"
import { type HeaderChange, headersAfter, type HeaderState } from "./HeaderRules.ts"

export interface WebhookState extends HeaderState {
  /** Null where there is none. */
  readonly description: string | null
  readonly events: ReadonlyArray<EventType>
  readonly isActive: boolean
  readonly honorRetryAfter: boolean
  /** Null where there is none. */
  readonly rateLimit: number | null
}

export type WebhookCommand =
  | (HeaderChange & {
    readonly _tag: "Update"
    /** An empty text removes it. */
    readonly description?: string | undefined
    readonly events?: ReadonlyArray<EventType> | undefined
    readonly isActive?: boolean | undefined
    readonly honorRetryAfter?: boolean | undefined
    /** Zero removes it. */
    readonly rateLimit?: number | undefined
  })
  | { readonly _tag: "Rotate" }
  | { readonly _tag: "Delete" }

export type WebhookEvent = "updated" | "paused" | "resumed" | "secret-rotated" | "deleted"

export interface Transition {
  readonly state: WebhookState
  /** Empty if the command changes nothing; then nothing is written. */
  readonly events: ReadonlyArray<WebhookEvent>
}

const sameEvents = (a: ReadonlyArray<EventType>, b: ReadonlyArray<EventType>) =>
  a.length === b.length && a.every((event, i) => event === b[i])

export const transition = (state: WebhookState, command: WebhookCommand): Transition => {
  if (command._tag === "Delete") return { state: { ...state, isActive: false }, events: ["deleted"] }
  if (command._tag === "Rotate") return { state, events: ["secret-rotated"] }
  const next: WebhookState = {
    url: command.url ?? state.url,
    description: command.description === undefined ? state.description : command.description || null,
    events: command.events === undefined ? state.events : [...new Set(command.events)],
    isActive: command.isActive ?? state.isActive,
    honorRetryAfter: command.honorRetryAfter ?? state.honorRetryAfter,
    rateLimit: command.rateLimit === undefined ? state.rateLimit : command.rateLimit || null,
    ...headersAfter(state, command),
  }
  const events: Array<WebhookEvent> = []
  // Values of headers are sealed and not compared: given anew, they are a change.
  const rewritten = (command.headers !== undefined && next.headerNames.length + state.headerNames.length > 0) ||
    (command.basicAuth !== undefined && (next.basicAuth || state.basicAuth))
  const edited = rewritten || next.url !== state.url || next.description !== state.description ||
    next.honorRetryAfter !== state.honorRetryAfter || next.rateLimit !== state.rateLimit ||
    !sameEvents(next.events, state.events)
  if (edited) events.push("updated")
  if (next.isActive !== state.isActive) events.push(next.isActive ? "resumed" : "paused")
  return { state: next, events }
}
