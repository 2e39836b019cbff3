/**
 * What projects are told when two turn out to be one: each hears, by the name that it knows, which one stands beside it.
 * To be asked for before they are made one, while it can be told whose projects are whose.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { RequestRow } from "../../access/RequestRows.ts"
import type { Fact } from "../../lifecycle/Positions.ts"
import { type Audience, personOf, persons } from "../Persons.ts"
import type { Identity } from "../PersonNews.ts"

export const linkNews = (sql: PgClient.PgClient) => {
  const { audienceOf } = persons(sql)

  return Effect.fnUntraced(function* (
    { author, fields, person_id: other }: RequestRow,
    now: Date,
  ): Effect.fn.Return<ReadonlyArray<Fact>, SqlError.SqlError> {
    const [own] = yield* sql<Identity>`select issuer, subject from people where id = ${author}`
    const ours = yield* audienceOf(author, now.getTime())
    const theirs = other === null ? [] : yield* audienceOf(other, now.getTime())
    const fact = (hearer: Audience, { issuer, subject }: Identity): Fact => ({
      kind: "identity-linked",
      projectId: hearer.projectId,
      institutionId: hearer.institutionId,
      person: { ...personOf(hearer), id: author },
      payload: { linked: { format: "iss_sub", iss: issuer, sub: subject } },
      initiatedBy: "user",
    })
    return [
      ...ours.map((hearer) => fact(hearer, fields as unknown as Identity)),
      ...theirs.map((hearer) => fact(hearer, own!)),
    ]
  })
}
