/**
 * Reads the audit, for operators, over all accounts. Records are redacted when they are written (`Audit`), so they may
 * be shown. Requests that were refused before their caller was recognised share one record that lists their ids; each
 * is found by its id like any other.
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { type AboutObject, auditConditions } from "./AuditConditions.ts"
import type { AuditFilter, AuditPage, AuditQuery, AuditRecord } from "./AuditRecord.ts"
import { newestRecords } from "./NewestRecords.ts"
import { Database } from "../database/Database.ts"
import { leastIdAt } from "../Ids.ts"

const page = 500

/** Whether a record meets the conditions that a page's query does not have. */
const meets = (record: AuditRecord, { action, actor, code, outcome }: AuditFilter): boolean =>
  (action === undefined || record.action === action) && (actor === undefined || record.actor === actor) &&
  (code === undefined || record.code === code) && (outcome === undefined || record.outcome === outcome)

export class AuditLog extends Context.Service<AuditLog, {
  /**
   * The records that match all parts of the filter, oldest first. Only `requestId`, `subject` and the times narrow what
   * is read: page by page, so that no statement grows with the audit.
   */
  readonly read: (filter: AuditFilter) => Stream.Stream<AuditRecord, SqlError.SqlError>
  /**
   * A page of the records that match, newest first. An object, a request and a person have indexes; for the other
   * conditions a page looks at 20,000 records at most, so that it may be short, and even empty, before the last.
   */
  readonly newest: (
    filter: AuditFilter,
    limit: number,
    afterId?: string,
  ) => Effect.Effect<AuditPage, SqlError.SqlError>
}>()("bailiwick/services/platform/observability/AuditLog") {
  static readonly layer = Layer.effect(
    AuditLog,
    Effect.gen(function* () {
      const { wide } = yield* Database

      const { about, columns, of } = auditConditions(wide)

      // Each name is a query by its own index: for all in one condition PostgreSQL would read every record by id.
      const ofObject = ({ itself, named }: AboutObject, after: string) =>
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
      const read = (filter: AuditFilter) => {
        const end = filter.until === undefined ? null : leastIdAt(filter.until)
        return Stream.paginate(leastIdAt(filter.since ?? 0), (from) =>
          Effect.map(after(from, filter), (rows) => {
            const last = rows.at(-1)
            return [rows, last === undefined || rows.length < page ? Option.none() : Option.some(last.id)] as const
          })).pipe(
            Stream.takeWhile(({ id }) => end === null || id < end),
            Stream.filter((record) => meets(record, filter)),
          )
      }

      const newest = newestRecords(wide, { about, of })

      return AuditLog.of({ read, newest })
    }),
  )
}
