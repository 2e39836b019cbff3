/** The operators' live stream, for as long as a page that follows it is looked at. */
import type { AnswerOf } from "./contract/EndpointTypes.ts"
import { type Cut, useLiveStream } from "./LiveStream.ts"

interface Events {
  readonly queues: AnswerOf<"queues">
  readonly backlogs: AnswerOf<"listBacklogs">
  readonly "dead-letters": unknown
  readonly findings: AnswerOf<"doctor">
}

/** A page's handlers of the events. */
export type Handlers = { readonly [Subject in keyof Events]?: (data: Events[Subject]) => void }

const subjects = ["queues", "backlogs", "dead-letters", "findings"] as const

/** Follows the stream; `refused` as for `useLiveStream`. */
export const useOperatorEvents = (handlers: Handlers, refused: () => unknown): Cut =>
  useLiveStream({
    path: "/v1/operations/stream",
    subjects,
    hear: (subject, data) => handlers[subject as keyof Events]?.(data as never),
    refused,
  })
