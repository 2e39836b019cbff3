/** `jobs`: work at the identity provider. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { Database } from "../../../services/platform/database/Database.ts"
import { newestJobs, undecidedJobs } from "../../../services/projects/Operations/NewestJobs.ts"
import { database } from "../Instance.ts"
import { limitFlag, listFlags, printRows } from "../RowOutput.ts"

export const jobs = Command.make(
  "jobs",
  {
    ...listFlags,
    limit: limitFlag,
    undecided: Flag.Boolean("undecided").pipe(
      Flag.withDescription("Only jobs that failed, or whose outcome is unknown"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn("cli.jobs")(function* ({ limit, undecided, ...how }) {
    const { sql } = yield* Database
    yield* printRows(
      yield* (undecided ? undecidedJobs(sql, limit) : newestJobs(sql, { limit, afterId: null })),
      ({ attempts, job_id, kind, last_error_code, max_attempts, project_id, state, updated_at }) => ({
        job_id,
        updated_at,
        kind,
        state,
        project_id,
        tries: `${attempts} of ${max_attempts}`,
        error: last_error_code,
      }),
      how,
      undecided ? "no job failed, and every outcome is known" : "no jobs",
    )
  }, Effect.provide(database)),
).pipe(Command.withDescription("Lists jobs at the identity provider, newest first"))
