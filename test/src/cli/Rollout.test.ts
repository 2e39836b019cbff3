/** The commands `rollout` and `signals`, as an operator types them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { userInfo } from "node:os"
import { personHolds } from "../../../services/people/PersonHolds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import * as Processes from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { access, identity, institution, person, project } from "../../support/TestIdentity.ts"
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

  it.effect(
    "lists people whom identity providers hold, and releases one, whom products hear of",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase
        const env = {
          DATABASE_URL: Redacted.value(database.url),
          DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
        }
        const home = yield* Processes.home
        const { sql } = yield* Database
        const fern = yield* institution()
        const ann = yield* person()
        yield* access(fern, yield* project(fern), ann)
        const { take } = yield* personHolds
        yield* run(take(ann, "https://gone.example", { kind: "purged", at: 1 }))
        const [held, nobody] = yield* Effect.all([
          type(home, env, ["signals", "holds", "--json"]),
          type(home, env, ["signals", "release", "--person", "nobody", "--reason", "the provider is gone"]),
        ], { concurrency: 2 })
        assert.deepInclude(JSON.parse(held.stdout), {
          person_id: ann,
          transmitter: "https://gone.example",
          kind: "purged",
        })
        assert.deepStrictEqual([nobody.code, nobody.stdout], [1, ""])
        assert.match(nobody.stderr, /no provider holds nobody/)
        const released = yield* type(home, env, [
          ...["signals", "release", "--person", ann, "--reason", "the provider is gone", "--as", "oz"],
        ])
        assert.deepStrictEqual([released.code, released.stdout], [0, `${ann} released, holds: 1\n`], released.stderr)
        assert.deepStrictEqual(yield* sql`select status, held_under from people where id = ${ann}`, [
          { status: "active", held_under: null },
        ])
        assert.deepStrictEqual(
          yield* sql`
          select kind, payload -> 'reason_admin' ->> 'en' as reason from lifecycle_events
          where person_id = ${ann} and kind like 'account-%' order by position`,
          [
            { kind: "account-disabled", reason: "PERSON_DISABLED_BY_ISSUER" },
            { kind: "account-enabled", reason: "PERSON_ENABLED_BY_OPERATOR" },
          ],
        )
        assert.lengthOf(
          yield* sql`
          select from audit_records r join log_pending l on l.record_id = r.id
          where action = 'person.released' and actor = 'operator:oz' and subject = ${`person:${ann}`}`,
          1,
        )
      }),
    slow,
  )
})
