/**
 * Messages that the broker lost and that an operator supplied: from a mirror or an export of a stream with their sequences,
 * or events alone, as a consumer has them. They are read as if the stream had them, so they take away again and never give.
 *
 * Verified before they are kept: an event of LIFECYCLE by our own signature, and that this database lacks it; a message of the
 * other two streams, which are not signed, by its form, its subject, and a sequence that is missing. Supplied again they change
 * nothing; another message at a place that has one replaces it, until the installation opens.
 */
import { Clock, Effect, Option, Schema } from "effect"
import { Subject } from "../../schemas/bus/Subject.ts"
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
  /** Events that this database had, too. */
  readonly passedOver: number
  readonly refused: { readonly at: number; readonly why: string } | null
}

const prefixOf = {
  LIFECYCLE: "lifecycle.v1.",
  TRANSFERS: "transfers.v1.",
  DIRECTORY: "directory.v1.",
} as const satisfies Record<ToldStream, string>

const aboutOf = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ kind: Schema.String, id: Schema.String })),
)

/** The subject under which this program published such data; null where the data does not say it. */
const publishedUnder = ({ data, stream }: GivenMessage): string | null => {
  const under = (of: string, what: string) => [prefixOf[stream], of, ".", what].join("")
  if (stream === "LIFECYCLE") {
    const event = claimed(data)
    return event === null ? null : under(Subject.token(event.projectId), event.kind)
  }
  if (stream === "TRANSFERS") {
    const transfer = publishedTransfer(data)
    return transfer === null ? null : under(Subject.token(transfer.domain_id), transfer.status)
  }
  const about = Option.getOrNull(aboutOf(data))
  return about === null ? null : under(about.kind, Subject.token(about.id))
}

const nameOf = ({ data, sequence }: Pick<GivenMessage, "data" | "sequence">): string =>
  sequence === null ? claimed(data)?.id ?? "" : String(sequence)

/** Where a message is kept. */
const placeOf = (message: GivenMessage): string => `${message.stream} ${nameOf(message)}`

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

/** Whether an event is one of those that a project's history was found to lack. */
const isInGap = (missing: ReadonlyArray<MissingMessages>, { at, projectId }: NonNullable<ReturnType<typeof claimed>>) =>
  missing.some(({ epoch, first, last, project_id }) =>
    project_id === projectId && epoch === at.epoch && first <= at.position && at.position <= last
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
    // An opening waits, or is seen: messages that it does not delete would be read in a later hold.
    const held = yield* sql`
      select from installation where state = 'held' and epoch = ${epoch} and missing <> '[]' for update`
    if (held.length === 0) return null
    const now = new Date(yield* Clock.currentTimeMillis)
    const added = yield* sql`
      insert into supplied_messages as s (stream, created, name, sequence, data, supplied_at)
      select stream, created, name, sequence, data, ${now}
      from jsonb_to_recordset(${sql.json(rowsOf(messages, streams))})
        r(stream text, created text, name text, sequence bigint, data text)
      on conflict (stream, created, name) do update set data = excluded.data, supplied_at = excluded.supplied_at
        where s.data <> excluded.data
      returning 1`
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
    return added.length
  }, sql.withTransaction)

  /**
   * The events that this database had, by id, and whether it knew that they were published. Retention may have deleted them
   * here; taken for lost, they would take away again what was given since. Each epoch counts its positions anew. This
   * database never had the events of a named gap.
   */
  const hadAlready = Effect.fnUntraced(function* (
    messages: ReadonlyArray<GivenMessage>,
    { held_since, lost_from_epoch, missing }: InstallationRow,
  ) {
    const events = messages.flatMap(({ data, stream }) => {
      const event = stream === "LIFECYCLE" ? claimed(data) : null
      return event === null || isInGap(missing, event)
        ? []
        : [{ id: event.id, project: event.projectId, epoch: event.at.epoch, position: event.at.position }]
    })
    const rows = yield* sql<{ id: string; told: boolean }>`
      select e.id, not exists (
          select from outbox o
          where o.id = e.id::uuid and coalesce(o.published_at >= ${held_since}, true)) as told
      from jsonb_to_recordset(${sql.json(events)}) e(id text, project text, epoch integer, position bigint)
      left join lifecycle_heads h on h.project_id = e.project
      where e.epoch < ${
      lost_from_epoch ?? 0
    } or e.epoch = h.epoch or (e.epoch = h.was_epoch and e.position <= h.was_position)
        or exists (
          select from lifecycle_told t
          where t.project_id = e.project and t.epoch = e.epoch and t.position >= e.position)`
    return new Map(rows.map(({ id, told }) => [id, told]))
  })

  /** The places of these messages that have a message already, with its data. */
  const keptAt = Effect.fnUntraced(function* (
    messages: ReadonlyArray<GivenMessage>,
    streams: InstallationRow["streams"],
  ) {
    const rows = yield* sql<{ place: string; data: string }>`
      select stream || ' ' || name as place, s.data
      from jsonb_to_recordset(${sql.json(rowsOf(messages, streams))}) r(stream text, created text, name text)
      join supplied_messages s using (stream, created, name)`
    return new Map(rows.map(({ data, place }) => [place, data]))
  })

  return Effect.fn("supplyMessages")(function* (messages: ReadonlyArray<GivenMessage>, reason: string) {
    const signed = yield* ownSignatures
    const installation = yield* readInstallation(sql)
    const { epoch, missing, state, streams, told } = installation
    if (state !== "held" || missing.length === 0) return null
    const kept = yield* keptAt(messages, streams)
    const had = yield* hadAlready(messages, installation)

    const faultOf = Effect.fnUntraced(function* (message: GivenMessage) {
      const { data, sequence, stream, subject } = message
      const there = kept.get(placeOf(message))
      if (there === data) return null
      if (subject !== null && !subject.startsWith(prefixOf[stream])) return `its subject is none of ${stream}`
      // A place that has a supplied message is not missing any more; the message may be replaced.
      if (sequence !== null && there === undefined && !isMissing(missing, stream, sequence)) {
        return `sequence ${sequence} of ${stream} is not missing`
      }
      if (sequence === null && stream !== "LIFECYCLE") return "a message that is not signed needs its sequence"
      if (stream === "LIFECYCLE" && claimed(data) === null) return "it is no lifecycle message"
      if (stream === "TRANSFERS" && publishedTransfer(data) === null) return "it is no message of a transfer"
      if (stream === "DIRECTORY" && toldDecision(data) === null) return "it is no decision"
      if (subject !== null && subject !== publishedUnder(message)) return "its subject is not that of its data"
      if (stream !== "LIFECYCLE") return null
      if (!(yield* signed(data))) return "no key of this installation has signed it"
      return sequence !== null && sequence > (told[stream] ?? 0) && had.get(claimed(data)!.id) === true
        ? "this database has its event, so it is not the one that is missing"
        : null
    })

    const refused = (at: number, why: string): Supplied => ({ epoch, added: 0, passedOver: 0, refused: { at, why } })
    const given = new Map<string, GivenMessage>()
    for (const [at, message] of messages.entries()) {
      const why = yield* faultOf(message)
      if (why !== null) return refused(at, why)
      const place = placeOf(message)
      if ((given.get(place) ?? message).data !== message.data) {
        return refused(at, "another message of its place is given, too")
      }
      given.set(place, message)
    }
    const taken = [...given.values()].filter((one) => one.sequence !== null || !had.has(nameOf(one)))
    const added = yield* keep(taken, reason, installation)
    return added === null
      ? null
      : { epoch, added, passedOver: given.size - taken.length, refused: null } satisfies Supplied
  })
})
