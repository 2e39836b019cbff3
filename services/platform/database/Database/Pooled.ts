/**
 * A pooler between the program and PostgreSQL, as PgBouncer, keeps from the server what a connection sets for itself. The
 * program cannot work so: time limits would not hold, plans would be made anew for each statement, prepared statements
 * and the locks of a session would belong to another connection at the next transaction.
 */
import type { PgClient } from "@effect/sql-pg"
import { Data, Effect, Predicate } from "effect"
import type { SqlError } from "effect/sql"

export class Pooled extends Data.TaggedError("Pooled")<{ readonly host: string }> {
  override get message() {
    return `a pooler at ${this.host} keeps from PostgreSQL what connections set, such as time limits: DATABASE_URL and ` +
      "DATABASE_OWNER_URL have to name the server itself"
  }
}

/** A limit that no role and no database is configured with. */
const limit = "1777ms"

/** Whether a connection with `parameters` has them on the server. */
export const probe = {
  parameters: { lock_timeout: limit },
  kept: (sql: PgClient.PgClient) =>
    Effect.map(
      sql<{ limit: string }>`select current_setting('lock_timeout') as limit`,
      ([row]) => row!.limit === limit,
    ),
}

/** PgBouncer refuses a connection with parameters that it does not know (08P01), if it is not told to ignore them. */
export const refusesParameters = ({ reason }: SqlError.SqlError): boolean => {
  let at: unknown = reason
  for (let depth = 0; depth < 6 && Predicate.isObject(at); depth++) {
    if (Predicate.hasProperty(at, "code") && at.code === "08P01") {
      return Predicate.hasProperty(at, "message") && /startup parameter/.test(String(at.message))
    }
    at = Predicate.hasProperty(at, "cause") ? at.cause : undefined
  }
  return false
}
