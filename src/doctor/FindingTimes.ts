/**
 * Since when each subject of the doctor is not fine: the first look that found it so, by any process or command. A look
 * that finds the subject fine again ends it; one that does not reach the subject leaves it as it is.
 *
 * Looks are made while an operator watches or `cli doctor` runs, so the trouble may be older than the first look.
 */
import { Clock, Effect } from "effect"
import { Database } from "../../services/platform/database/Database.ts"
import type { Finding } from "./Finding.ts"

/** Subjects that differ from process to process, or are about the process that looks. */
const ofProcess: ReadonlySet<string> = new Set(["configuration", "variables", "instance"])

export type Since = ReadonlyMap<string, Date>

/** Notes a look and returns the times by subject; empty where the database cannot be read. */
export const sinceOf = Effect.fnUntraced(
  function* (findings: ReadonlyArray<Finding>): Effect.fn.Return<Since, unknown, Database> {
    const { sql } = yield* Database
    const now = new Date(yield* Clock.currentTimeMillis)
    const shared = findings.filter(({ what }) => !ofProcess.has(what))
    const troubled = [...new Set(shared.flatMap(({ level, what }) => level === "ok" ? [] : [what]))].sort()
    const fine = [...new Set(shared.map(({ what }) => what))].filter((what) => !troubled.includes(what))
    const known = yield* sql<{ subject: string; since: Date }>`select subject, since from finding_times`
    const since = new Map(known.map((one) => [one.subject, one.since]))
    // A look that changes nothing writes nothing: a standby answers, and pages look every few seconds.
    if (fine.some((what) => since.has(what))) {
      yield* sql`delete from finding_times where subject = any(${fine}::text[])`
    }
    const added = troubled.filter((what) => !since.has(what))
    if (added.length === 0) return since
    yield* sql`
      insert into finding_times (subject, since) select subject, ${now} from unnest(${added}::text[]) t(subject)
      on conflict do nothing`
    return new Map([...added.map((what) => [what, now] as const), ...since])
  },
  Effect.timeout("2 seconds"),
  Effect.catchCause((): Effect.Effect<Since> => Effect.succeed(new Map())),
)

/** The time of a finding; null where the finding is fine, or its time is not known. */
export const timeOf = (since: Since, { level, what }: Pick<Finding, "level" | "what">): string | null =>
  level === "ok" ? null : since.get(what)?.toISOString() ?? null
