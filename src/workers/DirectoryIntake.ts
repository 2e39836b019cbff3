/**
 * Applies directory lines from the bus: the mail platform's (`intake.v1.directory.<kind>`) and those of identity
 * management (`intake.v1.identity-directory.<kind>`). A line is acknowledged once it is applied, known to be old, or
 * set aside with a reason. The broker authorises publishers by subject, so a line must be of its subject's kind.
 * IDENTITY_DIRECTORY decides what an identity line may change; the rest of the line is set aside.
 *
 * A line of an unknown kind waits for a newer program for an hour, which a rolling upgrade takes, and is then set
 * aside, since waiting messages count against `maxAckPending`.
 */
import { Array, Clock, Effect, Layer } from "effect"
import {
  directorySubjects,
  identityDirectorySubjects,
  identityKindNames,
  mailKindNames,
} from "../../schemas/bus/DirectoryMessages.ts"
import { Directory, type Trust } from "../../services/directory/Directory.ts"
import { Bus, type BusMessage } from "../../services/platform/messaging/Bus.ts"
import { type Reject, RejectedMessages } from "../../services/platform/messaging/RejectedMessages.ts"

const unknownKindDelayMillis = 30_000
const unknownKindPatienceMillis = 3_600_000

interface Family {
  readonly durable: string
  readonly filter: string
  readonly kinds: ReadonlyArray<string>
  readonly trust: Trust
}

const kindOf = ({ subject }: BusMessage): string => subject.slice(subject.lastIndexOf(".") + 1)

const rejectOf = ({ data, seq, subject }: BusMessage, reason: string, detail: string): Reject => ({
  stream: "DIRECTORY_IN",
  seq,
  subject,
  reason,
  detail,
  payload: data,
})

const consume = Effect.fnUntraced(function* ({ durable, filter, kinds, trust }: Family) {
  const bus = yield* Bus
  const directory = yield* Directory
  const rejects = yield* RejectedMessages
  const known = new Set(kinds)

  const apply = Effect.fnUntraced(function* (messages: ReadonlyArray<BusMessage>) {
    const results = yield* directory.apply(messages.map(({ text }) => text), messages.map(kindOf), trust)
    const faulty = Array.zip(messages, results).flatMap(([message, result]) => {
      if (result._tag === "rejected") return [rejectOf(message, result.reason, result.detail)]
      if (result._tag === "ignored" || result.setAside.length === 0) return []
      return [rejectOf(message, "not_followed", result.setAside.join(", "))]
    })
    yield* rejects.add(faulty)
    for (const message of messages) message.ack()
  })

  const leave = Effect.fnUntraced(function* (messages: ReadonlyArray<BusMessage>) {
    const until = (yield* Clock.currentTimeMillis) - unknownKindPatienceMillis
    const old = messages.filter(({ storedAtMillis }) => storedAtMillis < until)
    yield* rejects.add(old.map((message) => rejectOf(message, "unknown_kind", `kind ${kindOf(message)}`)))
    for (const message of old) message.ack()
    for (const message of messages) message.nak(unknownKindDelayMillis)
  })

  yield* bus.consume({
    stream: "DIRECTORY_IN",
    durable,
    filter,
    ackWaitMillis: 30_000,
    maxAckPending: 20_000,
    batch: 500,
    concurrency: 1,
    handler: Effect.fn("DirectoryIntake.take")(function* (messages) {
      yield* leave(messages.filter((message) => !known.has(kindOf(message))))
      yield* apply(messages.filter((message) => known.has(kindOf(message))))
    }),
  })
})

export const DirectoryIntake = {
  /** `identity`: how far identity lines of the bus are trusted. */
  layer: (options: { readonly identity: Trust }) =>
    Layer.effectDiscard(Effect.all([
      consume({ durable: "directory-intake", filter: directorySubjects, kinds: mailKindNames, trust: "follow" }),
      consume({
        durable: "identity-directory-intake",
        filter: identityDirectorySubjects,
        kinds: identityKindNames,
        trust: options.identity,
      }),
    ])),
}
