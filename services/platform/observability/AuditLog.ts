/**
 * Reads the audit, for operators, over all accounts. Records are redacted when they are written (`Audit`), so they may
 * be shown. Requests that were refused before their caller was recognised share one record that lists their ids; each
 * is found by its id like any other.
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { ofClient } from "./CurrentRequest.ts"
import { Database } from "../database/Database.ts"
import { floorOf } from "../Ids.ts"

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
  /** The object: `webhook:<id>`, `transfer:<id>`, or the id alone. */
  readonly subject?: string | undefined
  /** Milliseconds since 1970. */
  readonly since?: number | undefined
}

const page = 500

/** The names under which details hold the id of an object, by the object's kind. */
const inDetails: Readonly<Record<string, ReadonlyArray<string>>> = {
  transfer: ["transfer_id"],
  domain: ["domain_id"],
  institution: ["institution_id", "institution"],
  access: ["access_id", "access"],
  project: ["project_id", "project"],
  person: ["person", "other"],
}

export class AuditLog extends Context.Service<AuditLog, {
  /** The records that match all parts of the query, oldest first. */
  readonly read: (query: AuditQuery) => Stream.Stream<AuditRecord, SqlError.SqlError>
}>()("bailiwick/services/platform/observability/AuditLog") {
  static readonly layer = Layer.effect(
    AuditLog,
    Effect.gen(function* () {
      const { wide } = yield* Database

      /** SQL of the conditions that find an object: as the subject, and in the details (AuditIndexes.ts). */
      const about = (subject: string) => {
        const [kind, id] = subject.includes(":")
          ? [subject.slice(0, subject.indexOf(":")), subject.slice(subject.indexOf(":") + 1)]
          : [null, subject]
        const names = kind === null ? Object.values(inDetails).flat() : inDetails[kind] ?? []
        return {
          // The object's index is the only one, with its kind or without.
          itself: wide`split_part(subject, ':', 2) = ${id.split(":")[0]!} and ${
            kind === null ? wide`true` : wide`subject = ${subject}`
          }`,
          named: names.map((name) => wide`details - 'request_ids' @> ${JSON.stringify({ [name]: id })}::jsonb`),
        }
      }

      const of = (requestId: string) =>
        wide.or([requestId, ofClient(requestId)].flatMap((id) => [
          wide`request_id = ${id}`,
          wide`details ? 'request_ids' and details->'request_ids' @> ${JSON.stringify([id])}::jsonb`,
        ]))

      const columns = wide.literal(
        "id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details",
      )

      // Each name is a query by its own index: for all in one condition PostgreSQL would read every record by id.
      const ofObject = ({ itself, named }: ReturnType<typeof about>, after: string) =>
        named.reduce(
          (all, names) =>
            wide`${all} union all select ${columns} from audit_records where ${names} and id > ${after}::uuid`,
          wide`(select ${columns} from audit_records where ${itself} and id > ${after}::uuid
            order by audit_records.id limit ${page})`,
        )

      const after = (id: string, { requestId, subject }: AuditQuery) => {
        const object = subject === undefined ? null : about(subject)
        if (object !== null && requestId === undefined) {
          return wide<AuditRecord>`
            with found as materialized (${ofObject(object, id)})
            select distinct on (id collate "C") * from found order by id collate "C" limit ${page}`
        }
        return wide<AuditRecord>`
          select ${columns} from audit_records
          where ${
          wide.and([
            wide`id > ${id}::uuid`,
            ...(requestId === undefined ? [] : [of(requestId)]),
            ...(object === null ? [] : [wide.or([object.itself, ...object.named])]),
          ])
        }
          order by audit_records.id limit ${page}`
      }

      // A record's id carries its time; no record has the smallest id of a millisecond, so `>` loses none.
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
