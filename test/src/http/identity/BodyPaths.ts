/** Everywhere that a secret could remain: every row of the database, the log, and spans where they are recorded. */
import { Effect } from "effect"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Logged } from "../../../support/TestManagement.ts"
import { secrets } from "./IdentityClient.ts"

/** Each table's rows, the program's log and its spans, as text. */
export const everyPlace = Effect.gen(function* () {
  const { sql } = yield* Database
  const tables = yield* sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition
      and has_table_privilege(c.oid, 'select') order by 1`
  const { lines, spans } = yield* Logged
  const places = new Map<string, string>([["the log", lines.join("\n")], ["spans", [...spans].join("\n")]])
  for (const { name } of tables) {
    const [row] = yield* sql<{ text: string | null }>`
      select string_agg(row_to_json(t)::text, E'\n') as text from ${sql(name)} t`
    places.set(name, row!.text ?? "")
  }
  return places
})

/** Forms in which this process's secrets would show: a token by its claims or signature, all of them encoded or not. */
export const shapes = () =>
  [...secrets].flatMap((one) => one.startsWith("eyJ") ? one.split(".").slice(1) : [one])
    .flatMap((one) => [one, Buffer.from(one).toString("hex"), Buffer.from(one).toString("base64")])
