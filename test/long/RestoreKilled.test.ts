/**
 * A kill during a restore leaves it done or not begun; kills during the recovery of a held installation do not change
 * its result. And a backup of a large database takes little memory.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { connect } from "../../src/cli/backup/BackupConnection.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { start } from "../support/Processes.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { fixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"

const people = 400
const somebody = (n: number) => ({
  kind: "person",
  id: `p-${n}`,
  version: 1,
  issuer: demoIssuer,
  subject: `p-${n}`,
  display_name: `P ${n}`,
  email: `p-${n}@fern.example`,
  email_verified: true,
  status: "active",
})
const access = (n: number, more: object = {}) => ({
  kind: "access",
  id: `a-${n}`,
  version: 1,
  institution_id: ids.fern,
  project_id: ids.fernPortal,
  person_id: `p-${n}`,
  role: "user",
  state: "active",
  ...more,
})
const all = Array.from({ length: people }, (_, n) => n)

/** Peak resident memory, in MiB; from Linux. */
const peakOf = (pid: number): number | null => {
  try {
    const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
    return kib === undefined ? null : Number(kib) / 1024
  } catch {
    return null
  }
}

describe("backups and restores", () => {
  it.live(
    "a killed restore leaves no rows; a recovery killed three times revokes everything once",
    () =>
      Effect.gen(function* () {
        const at = yield* fixture()
        yield* at.apply(...all.map(somebody), ...all.map((n) => access(n)))
        yield* at.rows(`insert into seen_events (account_id, key, seen_on)
        select gen_random_uuid(), gen_random_uuid(), '2026-01-01' from generate_series(1, 300000)`)
        const file = join(at.home, "backup")
        assert.strictEqual((yield* at.type("backup", file)).code, 0)
        assert.isAbove(statSync(file).size, 5e6)
        yield* at.apply(...all.map((n) => access(n, { version: 2, state: "revoked" })))
        yield* at.published
        yield* at.instance.end("SIGKILL")

        const { ownerUrl, url } = yield* TestDatabase.make
        const fresh = { DATABASE_URL: Redacted.value(url), DATABASE_OWNER_URL: Redacted.value(ownerUrl) }
        yield* at.use(fresh)
        const db = yield* connect(ownerUrl)
        const filled = Effect.promise(async () => {
          const [row] = await db.rows<{ n: number }>(`select count(*)::int as n from access`)
          return row!.n
        })
        const busy = Effect.promise(async () => {
          const [row] = await db.rows<{ n: number }>(
            `select count(*)::int as n from pg_stat_activity where datname = current_database() and query like 'copy %'`,
          )
          return row!.n
        })
        const restoring = yield* start({ module: "src/cli/main.ts", args: ["restore", file], env: at.env() })
        yield* until("rows on their way", busy, (n) => n > 0)
        yield* restoring.kill("SIGKILL")
        yield* restoring.exited
        // The killed process's session ends by itself; until then its locks hold off the next one.
        yield* until("the session's end", busy, (n) => n === 0)
        assert.strictEqual(yield* filled, 0)
        const put = yield* at.type("restore", file)
        assert.strictEqual(put.code, 0, put.output)
        assert.strictEqual(yield* filled, people + 1)

        const revoked = at.rows<{ n: number }>(`select count(*)::int as n from access where state = 'revoked'`)
        yield* at.restart({ ...fresh, ROLES: "all" })
        const left: Array<number> = []
        for (const enough of [1, 100, 250]) {
          yield* until("some are revoked", revoked, ([row]) => row!.n >= enough)
          yield* at.instance.end("SIGKILL")
          left.push(people - (yield* revoked)[0]!.n)
          // Once the lease of the killed one is waited for; the others are taken to be over.
          if (left.length > 1) {
            yield* Effect.promise(() => db.rows(`update installation set recovering_until = 'epoch'`))
          }
          yield* at.restart({})
        }
        assert.isAbove(left[0]!, 0, "killed too late to have been in the middle of it")
        // The command is a program of its own: the row is looked at, and the command typed once.
        yield* until("open", at.rows<{ state: string }>(`select state from installation`), ([row]) =>
          row?.state === "open")
        assert.match((yield* at.type("installation", "show")).output, /^epoch 2, open/)
        assert.deepStrictEqual(yield* revoked, [{ n: people }])
        assert.deepStrictEqual(
          yield* at.rows(
            `select count(*)::int as events, max(position)::int as last from lifecycle_events
          where project_id = $1 and epoch = 2 and kind = 'access-revoked'
            and person_id like 'p-%'`,
            [ids.fernPortal],
          ).pipe(Effect.map((rows) =>
            (rows[0] as { events: number }).events
          )),
          people,
        )
        // Positions of the new epoch have no gap in spite of the kills.
        assert.deepStrictEqual(
          yield* at.rows(
            `select count(*) = max(position) as whole from lifecycle_events
          where project_id = $1 and epoch = 2`,
            [ids.fernPortal],
          ),
          [{ whole: true }],
        )
      }),
    900_000,
  )

  it.live("a backup of 130 MB of rows takes less than 450 MB of memory", () =>
    Effect.gen(function* () {
      const at = yield* fixture()
      yield* at.rows(`insert into audit_records (id, at, action, outcome, details)
        select gen_random_uuid(), '2026-01-01', 'test.row', 'done',
          jsonb_build_object('text', repeat(md5(n::text), 40)) from generate_series(1, 100000) n`)
      const file = join(at.home, "backup")
      const program = yield* start({ module: "src/cli/main.ts", args: ["backup", file], env: at.env() })
      let peak = 0
      const look = Effect.sync(() => {
        peak = Math.max(peak, peakOf(program.pid) ?? 0)
      })
      yield* Effect.raceFirst(program.exited, look.pipe(Effect.andThen(Effect.sleep("20 millis")), Effect.forever))
      assert.isTrue(statSync(file).isFile())
      // 130 MB of rows; the runtime and the program alone take some 200.
      assert.isBelow(peak, 450)
    }), 300_000)
})
