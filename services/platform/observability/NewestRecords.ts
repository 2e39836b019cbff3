/** Reads pages of the audit, newest first (AuditLog.ts). */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { leastIdAt } from "../Ids.ts"
import { type auditConditions } from "./AuditConditions.ts"
import type { AuditFilter, AuditPage, AuditRecord } from "./AuditRecord.ts"

/** SQL of whether a record is evidence of who may act (AuditFilter). */
const isEvidence = (sql: PgClient.PgClient): Statement.Fragment =>
  sql`(action like 'domain-transfer.%' or coalesce(actor not like 'account:%', false)
    and action not like 'console-session.%' and action not like 'notice-settings.%')`

/** Records that a page looks at. */
const looked = 20_000
const highest = "ffffffff-ffff-ffff-ffff-ffffffffffff"

const earlier = (one: string, other: string) => one < other ? one : other

export const newestRecords = (
  sql: PgClient.PgClient,
  { about, of }: Pick<ReturnType<typeof auditConditions>, "about" | "of">,
) => {
  const values = "at, request_id, route, action, actor, subject, outcome, status, code, details"
  // By the id itself, whose order an index has; PostgreSQL does not know that its text has the same.
  const columns = sql.literal(`audit_records.id as uid, ${values}`)

  /** The condition that an index finds besides the time, where there is one. */
  const indexed = ({ actor, requestId }: AuditFilter): Statement.Fragment =>
    requestId !== undefined ? of(requestId) : actor?.startsWith("person:")
      // The index's own condition: PostgreSQL does not conclude it from the actor.
      ? sql`actor = ${actor} and actor like 'person:%'`
      : sql`true`

  const rest = ({ action, actor, code, evidence, outcome }: AuditFilter): Statement.Fragment =>
    sql.and([
      evidence === true ? isEvidence(sql) : sql`true`,
      ...(actor === undefined ? [] : [sql`actor = ${actor}`]),
      ...(action === undefined ? [] : [sql`action = ${action}`]),
      ...(code === undefined ? [] : [sql`code = ${code}`]),
      ...(outcome === undefined ? [] : [sql`outcome = ${outcome}`]),
    ])

  /** The newest records in the span that an index finds, `looked` at most, before the other conditions. */
  const scanned = (filter: AuditFilter, span: Statement.Fragment): Statement.Fragment => {
    const one = indexed(filter)
    if (filter.subject === undefined) {
      return sql`select ${columns} from audit_records where ${one} and ${span}
        order by audit_records.id desc limit ${looked}`
    }
    const { itself, named } = about(filter.subject)
    if (filter.requestId !== undefined) {
      return sql`select ${columns} from audit_records where ${one} and ${sql.or([itself, ...named])} and ${span}
        order by audit_records.id desc limit ${looked}`
    }
    // Each name is a query by its own index: for all in one condition PostgreSQL would read every record by id.
    const found = named.reduce(
      (all, names) => sql`${all} union all select ${columns} from audit_records where ${names} and ${span}`,
      sql`(select ${columns} from audit_records where ${itself} and ${span}
        order by audit_records.id desc limit ${looked})`,
    )
    return sql`select distinct on (uid) * from (${found}) f order by uid desc limit ${looked}`
  }

  return Effect.fnUntraced(function* (filter: AuditFilter, limit: number, afterId: string = highest) {
    // A record's id carries its time.
    const before = filter.until === undefined ? afterId : earlier(afterId, leastIdAt(filter.until))
    const span = sql`id >= ${leastIdAt(filter.since ?? 0)}::uuid and id < ${before}::uuid`
    const all = scanned(filter, span)
    const found = yield* sql<AuditRecord>`
      select uid::text as id, ${sql.literal(values)} from (${all}) s where ${rest(filter)} order by uid desc limit ${
      limit + 1
    }`
    const records = found.slice(0, limit)
    if (found.length > limit) return { records, nextAfterId: records.at(-1)!.id } satisfies AuditPage
    // The last record that was looked at, where there may be more behind it.
    const [end] = yield* sql<{ id: string }>`
      select uid::text as id from (${all}) s order by uid desc offset ${looked - 1} limit 1`
    const bound = end?.id
    // Records written meanwhile move the end: records behind it belong to the next page.
    return bound === undefined
      ? { records, nextAfterId: null } satisfies AuditPage
      : { records: records.filter(({ id }) => id >= bound), nextAfterId: bound } satisfies AuditPage
  })
}
