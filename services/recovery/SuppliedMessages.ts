/**
 * Messages that the broker lost and that an operator supplied: from a mirror or an export of a stream with their sequences,
 * or events alone, as a consumer has them. They are read as if the stream had them, so they take away again and never give.
 *
 * Verified before they are kept: an event of LIFECYCLE by our own signature; a message of the other two streams, which are not
 * signed, by its form, its subject, and a sequence that is missing. Supplied again they change nothing.
 */
import { Clock, Effect } from "effect"
import { Database } from "../platform/database/Database.ts"
import { type InstallationRow, type MissingMessages, readInstallation } from "../platform/database/Installation.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { publishedTransfer } from "../transfers/TransferRecovery.ts"
import { toldDecision } from "./LostDecisions.ts"
import { claimed, ownSignatures } from "./LostEvent.ts"
import { createdOf, type ToldStream } from "./SuppliedHistory.ts"

/** A message that an operator gives; without a sequence: an event as a consumer has it. */
export interface GivenMessage {
  readonly stream: ToldStream
  readonly sequence: number | null
  readonly subject: string | null
  readonly data: string
}

/** What became of the messages: how many are new, or the first that is refused and why. */
export interface Supplied {
  readonly epoch: number
  readonly added: number
  readonly refused: { readonly at: number; readonly why: string } | null
}

const subjectOf = {
  LIFECYCLE: /^lifecycle\.v1\.[^.]+\.[^.]+$/,
  TRANSFERS: /^transfers\.v1\.[^.]+\.[^.]+$/,
  DIRECTORY: /^directory\.v1\.[^.]+\.[^.]+$/,
} as const satisfies Record<ToldStream, RegExp>

const nameOf = ({ data, sequence }: Pick<GivenMessage, "data" | "sequence">): string =>
  sequence === null ? claimed(data)?.id ?? "" : String(sequence)

const rowsOf = (messages: ReadonlyArray<GivenMessage>, streams: InstallationRow["streams"]) =>
  messages.map(({ data, sequence, stream }) => ({
    stream,
    created: createdOf(streams, stream),
    name: nameOf({ data, sequence }),
    sequence,
    data,
  }))

const isMissing = (missing: ReadonlyArray<MissingMessages>, stream: string, sequence: number) =>
  missing.some((gap) =>
    gap.stream === stream && gap.project_id === undefined && gap.first <= sequence && sequence <= gap.last
  )

/** Keeps messages for the recovery of the epoch that is held for want of them; null where none is. All of them, or none. */
export const supplyMessages = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit

  const keep = Effect.fnUntraced(function* (
    messages: ReadonlyArray<GivenMessage>,
    reason: string,
    { epoch, streams }: InstallationRow,
  ) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const added = yield* sql`
      insert into supplied_messages (stream, created, name, sequence, data, supplied_at)
      select stream, created, name, sequence, data, ${now}
      from jsonb_to_recordset(${sql.json(rowsOf(messages, streams))})
        r(stream text, created text, name text, sequence bigint, data text)
      on conflict do nothing returning 1`
    if (added.length > 0) {
      yield* audit.append({
        action: "installation.supplied",
        actor: yield* CurrentOperator,
        subject: `installation:${epoch}`,
        outcome: "done",
        decision: true,
        details: { reason, messages: added.length },
      })
    }
    return { epoch, added: added.length, refused: null } satisfies Supplied
  }, sql.withTransaction)

  /**
   * Of events that a consumer has: those that this database had, too. It may keep them no more, and taken for lost they
   * would take away again what was given since.
   */
  const hadAlready = Effect.fnUntraced(function* (messages: ReadonlyArray<GivenMessage>) {
    const events = messages.flatMap(({ data, sequence }) => {
      const event = sequence === null ? claimed(data) : null
      return event === null
        ? []
        : [{ id: event.id, project: event.projectId, epoch: event.at.epoch, position: event.at.position }]
    })
    const rows = yield* sql<{ id: string }>`
      select e.id from jsonb_to_recordset(${sql.json(events)}) e(id text, project text, epoch bigint, position bigint)
      join lifecycle_heads h on h.project_id = e.project
      where (e.epoch, e.position) <= (h.was_epoch, h.was_position) or e.epoch = h.epoch`
    return new Set(rows.map(({ id }) => id))
  })

  return Effect.fn("supplyMessages")(function* (messages: ReadonlyArray<GivenMessage>, reason: string) {
    const signed = yield* ownSignatures
    const installation = yield* readInstallation(sql)
    const { epoch, held_reason, missing, state, streams } = installation
    if (state !== "held" || held_reason !== "messages_missing") return null
    const known = new Set(
      (yield* sql<{ name: string }>`
        select stream || ' ' || name as name
        from jsonb_to_recordset(${sql.json(rowsOf(messages, streams))}) r(stream text, created text, name text)
        join supplied_messages using (stream, created, name)`).map(({ name }) => name),
    )

    const faultOf = Effect.fnUntraced(function* (message: GivenMessage) {
      const { data, sequence, stream, subject } = message
      if (known.has(`${stream} ${nameOf(message)}`)) return null
      if (subject !== null && !subjectOf[stream].test(subject)) return `its subject is none of ${stream}`
      if (sequence !== null && !isMissing(missing, stream, sequence)) {
        return `sequence ${sequence} of ${stream} is not missing`
      }
      if (sequence === null && stream !== "LIFECYCLE") return "a message that is not signed needs its sequence"
      if (stream === "TRANSFERS") return publishedTransfer(data) === null ? "it is no message of a transfer" : null
      if (stream === "DIRECTORY") return toldDecision(data) === null ? "it is no decision" : null
      if (claimed(data) === null) return "it is no lifecycle message"
      return (yield* signed(data)) ? null : "no key of this installation has signed it"
    })

    for (const [at, message] of messages.entries()) {
      const why = yield* faultOf(message)
      if (why !== null) return { epoch, added: 0, refused: { at, why } } satisfies Supplied
    }
    const had = yield* hadAlready(messages)
    return yield* keep(messages.filter((one) => one.sequence !== null || !had.has(nameOf(one))), reason, installation)
  })
})
