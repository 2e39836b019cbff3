/** Reads the lost time of a stream, with the messages that an operator supplied (SuppliedMessages.ts) in their places. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { Bus, type BusError, type MissingRange, type PastMessage } from "../platform/messaging/Bus.ts"
import { Database } from "../platform/database/Database.ts"
import type { InstallationRow } from "../platform/database/Installation.ts"

/** A stream that carries what was decided in the lost time. */
export type ToldStream = "LIFECYCLE" | "TRANSFERS" | "DIRECTORY"

const readAtOnce = 500

/** The parts of ranges that have none of these sequences. Both ascend, so that each is passed once. */
export const rangesWithout = (
  ranges: ReadonlyArray<MissingRange>,
  sequences: ReadonlyArray<number>,
): ReadonlyArray<MissingRange> => {
  const parts: Array<MissingRange> = []
  let at = 0
  for (const { first, last } of ranges) {
    while (at < sequences.length && sequences[at]! < first) at++
    let from = first
    for (; at < sequences.length && sequences[at]! <= last; at++) {
      const seq = sequences[at]!
      if (from < seq) parts.push({ first: from, last: seq - 1 })
      from = seq + 1
    }
    if (from <= last) parts.push({ first: from, last })
  }
  return parts
}

/** When the stream was made to which this database had published. */
export const createdOf = (streams: InstallationRow["streams"], stream: ToldStream): string => streams[stream] ?? ""

const past = (data: string, seq: number): PastMessage => ({ subject: "", seq, data: new TextEncoder().encode(data) })

export const suppliedHistory = Effect.gen(function* () {
  const { sql } = yield* Database
  const bus = yield* Bus

  /** The sequences of a stream that were supplied, ascending. */
  const sequences = Effect.fnUntraced(function* (stream: ToldStream, created: string) {
    const rows = yield* sql<{ sequence: number }>`
      select sequence::float8 as sequence from supplied_messages
      where stream = ${stream} and created = ${created} and sequence is not null order by sequence`
    return rows.map(({ sequence }) => sequence)
  })

  /** Differs once messages were supplied, or replaced. */
  const version = Effect.map(
    sql<{ n: number; newest: Date | null }>`
      select count(*)::int as n, max(supplied_at) as newest from supplied_messages`,
    ([row]) => `${row!.n} ${row!.newest?.getTime()}`,
  )

  const numbered = (stream: ToldStream, created: string, numbers: ReadonlyArray<number>) =>
    sql<{ sequence: number; data: string }>`
      select sequence::float8 as sequence, data from supplied_messages
      where stream = ${stream} and created = ${created} and sequence = any(${[...numbers]}::bigint[]) order by sequence`

  const alone = (stream: ToldStream, created: string, after: string) =>
    sql<{ name: string; data: string }>`
      select name, data from supplied_messages
      where stream = ${stream} and created = ${created} and sequence is null and name > ${after}
      order by name limit ${readAtOnce}`

  /** Gives `take` the messages in the order of their sequences; events without one come last. */
  const read = Effect.fn("SuppliedHistory.read")(function* <E>(
    stream: ToldStream,
    { sinceMillis, streams }: { readonly sinceMillis: number; readonly streams: InstallationRow["streams"] },
    take: (messages: ReadonlyArray<PastMessage>) => Effect.Effect<void, E>,
  ): Effect.fn.Return<void, BusError | SqlError.SqlError | E> {
    const created = createdOf(streams, stream)
    let left = yield* sequences(stream, created)
    /** Takes what was supplied before a sequence. */
    const before = Effect.fnUntraced(function* (seq: number) {
      while (left.length > 0 && left[0]! < seq) {
        const some = left.slice(0, readAtOnce).filter((one) => one < seq)
        const rows = yield* numbered(stream, created, some)
        yield* take(rows.map(({ data, sequence }) => past(data, sequence)))
        left = left.slice(some.length)
      }
    })
    yield* bus.history(stream, sinceMillis, (messages) =>
      Effect.gen(function* () {
        let from = 0
        for (const [n, { seq }] of messages.entries()) {
          if (left.length === 0 || left[0]! > seq) continue
          if (n > from) yield* take(messages.slice(from, n))
          yield* before(seq)
          from = n
        }
        yield* take(messages.slice(from))
      }))
    yield* before(Infinity)
    for (let name = "";;) {
      const page = yield* alone(stream, created, name)
      if (page.length === 0) return
      yield* take(page.map(({ data }) => past(data, 0)))
      name = page.at(-1)!.name
    }
  })

  return { read, sequences, version }
})
