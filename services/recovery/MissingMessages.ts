/**
 * Finds messages that were published in the lost time and that the broker lost. Revocations may be among them, so the
 * installation stays held until the messages are there again or an operator opens it.
 *
 * - In the streams: sequences after the last that this database had known. A message up to that sequence was committed
 *   here before it was published, so it is not lost.
 * - In the projects' histories: each event names the digest of the one before it. An event whose predecessor neither
 *   this database nor the stream has shows a gap, whatever the stream's sequence says.
 */
import { Effect } from "effect"
import type { ProjectId } from "../../schemas/BrandedIds.ts"
import { Bus, type MissingRange } from "../platform/messaging/Bus.ts"
import { genesis } from "../platform/security/CanonicalJson.ts"
import { Database } from "../platform/database/Database.ts"
import type { InstallationRow, MissingMessages } from "../platform/database/Installation.ts"
import { createdOf, rangesWithout, suppliedHistory } from "./SuppliedHistory.ts"

/** The position, in its project's history, of an event that is not known here. */
export interface LostPosition {
  readonly projectId: ProjectId
  readonly epoch: number
  readonly position: number
  readonly digest: string
  readonly prevDigest: string
}

/** The streams that carry what was decided in the lost time. */
export const tellingStreams = ["LIFECYCLE", "TRANSFERS", "DIRECTORY"] as const

const nameOf = ({ epoch, projectId }: LostPosition) => `${projectId}\n${epoch}`

export const missingMessages = Effect.gen(function* () {
  const { sql } = yield* Database
  const bus = yield* Bus
  const supplied = yield* suppliedHistory

  /** Sequences that the streams lack, and that were not supplied. */
  const ofStreams = Effect.fnUntraced(function* ({ streams, told }: InstallationRow, sinceMillis: number) {
    const back = yield* sql<{ stream: string; to: bigint }>`
      select stream, went_back_to as to from relay_streams where went_back_to is not null`
    const found: Array<MissingMessages> = []
    for (const stream of tellingStreams) {
      const known = told[stream] ?? null
      const to = back.find((row) => row.stream === stream)?.to
      let ranges: ReadonlyArray<MissingRange>
      if (known !== null && to !== undefined && Number(to) < known) {
        ranges = [{ first: Number(to) + 1, last: known }]
      } else ranges = yield* bus.missing(stream, known, sinceMillis)
      ranges = rangesWithout(ranges, yield* supplied.sequences(stream, createdOf(streams, stream)))
      found.push(...ranges.map(({ first, last }) => ({ stream, first, last })))
    }
    return found
  })

  /** Of events whose predecessor is not among the lost ones, those whose predecessor this database lacks as well. */
  const withoutPredecessor = Effect.fnUntraced(function* (positions: ReadonlyArray<LostPosition>) {
    const rows = positions.map((lost, n) => ({ n, ...lost }))
    return yield* sql<{ n: number; known: bigint }>`
      with lost as (
        select * from jsonb_to_recordset(${sql.json(rows)})
          r(n integer, "projectId" text, epoch integer, position bigint, "prevDigest" text)
      )
      select l.n, greatest(
          coalesce((select max(t.position) from lifecycle_told t
            where t.project_id = l."projectId" and t.epoch = l.epoch and t.position < l.position), 0),
          case when h.was_epoch = l.epoch and h.was_position < l.position then h.was_position else 0 end) as known
      from lost l left join lifecycle_heads h on h.project_id = l."projectId"
      where not exists (
          select from lifecycle_told t where t.project_id = l."projectId" and t.epoch = l.epoch
            and t.position = l.position - 1 and t.digest = l."prevDigest")
        and ((h.was_epoch, h.was_position, h.was_digest) = (l.epoch, l.position - 1, l."prevDigest")) is not true
      order by l.n`
  })

  /** The positions that are missing before or between the lost events. */
  const ofProjects = Effect.fnUntraced(function* (positions: ReadonlyArray<LostPosition>) {
    const digests = new Set(positions.map(({ digest }) => digest))
    const open = positions.filter(({ position, prevDigest }) =>
      !(position === 1 && prevDigest === genesis) && !digests.has(prevDigest)
    )
    if (open.length === 0) return []
    const histories = Map.groupBy(positions, nameOf)
    const found: Array<MissingMessages> = []
    for (const { known, n } of yield* withoutPredecessor(open)) {
      const lost = open[n]!
      const kept = histories.get(nameOf(lost))!.map(({ position }) => position)
      const before = kept.reduce((most, at) => at < lost.position ? Math.max(most, at) : most, Number(known))
      const last = lost.position - 1
      const { epoch, position, projectId } = lost
      found.push({
        stream: "LIFECYCLE",
        project_id: projectId,
        epoch,
        // An event is there at the position before, but with another digest than this event names.
        ...(before === last ? { first: position, last: position } : { first: before + 1, last }),
      })
    }
    return found
  })

  return { ofStreams, ofProjects }
})
