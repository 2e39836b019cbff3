/** The command `rollout`, as an operator types it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { userInfo } from "node:os"
import { Database } from "../../../services/platform/database/Database.ts"
import * as Processes from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { identity, institution, project } from "../../support/TestIdentity.ts"
import { slow, type } from "./Terminal.ts"

layer(identity, { excludeTestServices: true, timeout: "2 minutes" })("cli rollout", (it) => {
  it.effect("holds, fails and releases a project, and prints its state", () =>
    Effect.gen(function* () {
      const database = yield* TestDatabase
      const env = {
        DATABASE_URL: Redacted.value(database.url),
        DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
      }
      const home = yield* Processes.home
      const cli = (...args: ReadonlyArray<string>) => type(home, env, ["rollout", ...args])
      const id = yield* project(yield* institution())
      const because = ["--reason", "the connector crashes"]
      const held = yield* cli("hold", "--project", id, ...because)
      assert.deepStrictEqual([held.code, held.stdout], [0, `${id} held, version 2\n`], held.stderr)
      const [failed, unknown, hasty] = yield* Effect.all([
        cli("fail", "--project", id, ...because, "--as", "oz"),
        cli("hold", "--project", "nothing", ...because),
        cli("release", "--project", id, "--reason", "short"),
      ], { concurrency: 3 })
      assert.deepStrictEqual([failed.code, failed.stdout], [0, `${id} held, version 3\n`], failed.stderr)
      assert.deepStrictEqual([unknown.code, unknown.stdout], [1, ""])
      assert.match(unknown.stderr, /there is no project nothing/)
      assert.deepStrictEqual([hasty.code, hasty.stdout], [1, ""])
      assert.match(hasty.stderr, /8 to 500 characters/)
      const released = yield* cli("release", "--project", id, ...because)
      assert.deepStrictEqual([released.code, released.stdout], [0, `${id} registered, version 4\n`], released.stderr)
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select action, actor from audit_records where subject = ${`project:${id}`} order by id`,
        [["hold", userInfo().username], ["fail", "oz"], ["release", userInfo().username]].map(([action, name]) => ({
          action: `rollout.${action}`,
          actor: `operator:${name}`,
        })),
      )
    }), slow)
})
