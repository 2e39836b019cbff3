/** SQL of the conditions by which audit records are found, each by its index. */
import type { PgClient } from "@effect/sql-pg"
import type { Statement } from "effect/sql"
import { ofClient } from "./CurrentRequest.ts"

/** The conditions of an object's records: those whose subject it is, and those that name it in their details. */
export interface AboutObject {
  readonly itself: Statement.Fragment
  readonly named: ReadonlyArray<Statement.Fragment>
}

/** The names under which details hold the id of an object, by the object's kind. */
const inDetails: Readonly<Record<string, ReadonlyArray<string>>> = {
  transfer: ["transfer_id"],
  domain: ["domain_id"],
  institution: ["institution_id", "institution"],
  access: ["access_id", "access"],
  project: ["project_id", "project"],
  person: ["person", "other"],
}

export const auditConditions = (sql: PgClient.PgClient) => {
  /** Conditions that find an object: as the subject, and in the details (AuditIndexes.ts). */
  const about = (subject: string): AboutObject => {
    const [kind, id] = subject.includes(":")
      ? [subject.slice(0, subject.indexOf(":")), subject.slice(subject.indexOf(":") + 1)]
      : [null, subject]
    const names = kind === null ? Object.values(inDetails).flat() : inDetails[kind] ?? []
    return {
      // The object's index is the only one, with its kind or without.
      itself: sql`split_part(subject, ':', 2) = ${id.split(":")[0]!} and ${
        kind === null ? sql`true` : sql`subject = ${subject}`
      }`,
      named: names.map((name) => sql`details - 'request_ids' @> ${JSON.stringify({ [name]: id })}::jsonb`),
    }
  }

  /** The condition of a request's records: alone, or gathered with others in one record. */
  const of = (requestId: string): Statement.Fragment =>
    sql.or([requestId, ofClient(requestId)].flatMap((id) => [
      sql`request_id = ${id}`,
      sql`details ? 'request_ids' and details->'request_ids' @> ${JSON.stringify([id])}::jsonb`,
    ]))

  const columns = sql.literal(
    "id::text as id, at, request_id, route, action, actor, subject, outcome, status, code, details",
  )

  return { about, of, columns }
}
