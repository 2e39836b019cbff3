/**
 * Reading the audit: for operators, over all accounts. Records are redacted as they are written (`Audit`), so what is
 * read here may be shown. A request that was refused before anyone was recognised stands with others in one record that
 * lists their ids; it is found like any other.
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { ofClient } from "./CurrentRequest.ts"
import { Database } from "./Database.ts"
import { floorOf } from "./Ids.ts"

export interface AuditRecord {
  readonly id: string
  readonly at: Date
  readonly request_id: string | null
  readonly route: string | null
  readonly action: string
  readonly actor: string | null
  readonly subject: string | null
  readonly outcome: "done" | "refused" | "failed"
  readonly status: number | null
  readonly code: string | null
  readonly details: Readonly<Record<string, unknown>>
}

export interface AuditQuery {
  /** The id as an answer shows it, or `client:<id>`, which finds only records whose id the client chose. */
  readonly requestId?: string | undefined
  /** On what: `webhook:<id>`, `transfer:<id>`, or the id alone, for which there is no index. */
  readonly subject?: string | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined
}

const page = 500

/** Objects that records name in their details, as `<kind>_id`, and that have no index there. */
const inDetails = ["transfer", "domain", "institution", "access"] as const

export class AuditLog extends Context.Service<AuditLog, {
  /** The records that all of the query's parts fit, oldest first. */
  readonly read: (query: AuditQuery) => Stream.Stream<AuditRecord, SqlError.SqlError>
}>()("bailiwick/services/platform/AuditLog") {
  static readonly layer = Layer.effect(
    AuditLog,
    Effect.gen(function* () {
      const { wide } = yield* Database

      const named = (kind: string, id: string) => wide`details @> ${JSON.stringify({ [`${kind}_id`]: id })}::jsonb`

      const about = (subject: string) => {
        const colon = subject.indexOf(":")
        if (colon < 0) {
          const kinds = inDetails.map((kind) => named(kind, subject))
          return wide.or([wide`split_part(subject, ':', 2) = ${subject}`, ...kinds])
        }
        const kind = inDetails.find((kind) => kind === subject.slice(0, colon))
        const itself = wide`subject = ${subject}`
        return kind === undefined ? itself : wide.or([itself, named(kind, subject.slice(colon + 1))])
      }

      const of = (requestId: string) =>
        wide.or([requestId, ofClient(requestId)].flatMap((id) => [
          wide`request_id = ${id}`,
          wide`details ? 'request_ids' and details->'request_ids' @> ${JSON.stringify([id])}::jsonb`,
        ]))

      const after = (id: string, { requestId, subject }: AuditQuery) =>
        wide<AuditRecord>`
          select id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details
          from audit_records
          where ${
          wide.and([
            wide`id > ${id}::uuid`,
            ...(subject === undefined ? [] : [about(subject)]),
            ...(requestId === undefined ? [] : [of(requestId)]),
          ])
        }
          order by id limit ${page}`

      // A record's id carries its time; the smallest id of a millisecond is nobody's, so `>` loses none.
      const read = (query: AuditQuery) =>
        Stream.paginate(floorOf(query.since ?? 0), (from) =>
          Effect.map(after(from, query), (rows) => {
            const last = rows.at(-1)
            return [rows, last === undefined || rows.length < page ? Option.none() : Option.some(last.id)] as const
          }))

      return AuditLog.of({ read })
    }),
  )
}
