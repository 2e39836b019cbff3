/**
 * The person for whom a request is carried out: it may have been suspended, or merged into another, since the request.
 */
import type { PgClient } from "@effect/sql-pg"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { InvalidState } from "../../../schemas/problems/IdentityProblems.ts"
import type { Holder } from "../../access/AccessVersions.ts"
import type { Question } from "../../platform/database/FencedCommand.ts"

/** The active person behind any of its ids, as a question of a command. */
export const activeRow = (sql: PgClient.PgClient, personId: PersonId): Question => ({
  rows: sql`
    select k.id, k.issuer, k.subject from people p join people k on k.id = coalesce(p.merged_into, p.id)
    where p.id = ${personId} and p.issuer is not null and k.issuer is not null and k.status = 'active' and not k.removed`,
  lock: sql`for share`,
})

/** The person in an answer to `activeRow`; null where it is not active. */
export const activeIn = (answer: string): Holder | null => (JSON.parse(answer) as ReadonlyArray<Holder>)[0] ?? null

/** The refusal to carry out a request whose author is no longer active. */
export const notActive = () => new InvalidState({ state: "author_not_active", allowed: ["active"] })

export const isActiveIn = (answer: string): boolean => activeIn(answer) !== null

/** The person into whom this id was merged, or the person itself, where it is known and not removed. */
export const knownRow = (sql: PgClient.PgClient, personId: PersonId): Question => ({
  rows: sql`
    select k.id from people p join people k on k.id = coalesce(p.merged_into, p.id)
    where p.id = ${personId} and p.issuer is not null and not p.removed and not k.removed`,
  lock: sql`for share`,
})

export const knownIn = (answer: string): PersonId | null =>
  (JSON.parse(answer) as ReadonlyArray<{ readonly id: PersonId }>)[0]?.id ?? null
