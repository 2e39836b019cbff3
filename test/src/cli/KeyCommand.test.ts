/** The command `keys`, as an operator types it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { keyColumns, neededBy } from "../../../src/doctor/KeyUse.ts"
import * as Processes from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { consumer, rotating, work } from "../../services/lifecycle/Keys/KeysFixture.ts"
import { scene } from "../../services/lifecycle/LifecycleFixture.ts"
import { lines, slow, type } from "./Terminal.ts"

const ring = (active: string) =>
  JSON.stringify({
    active,
    keys: { k1: Buffer.alloc(32, 7).toString("base64"), k2: Buffer.alloc(32, 8).toString("base64") },
  })

layer(rotating(), { excludeTestServices: true, timeout: "2 minutes" })("cli keys", (it) => {
  it.effect(
    "announces, lists the consumers waited for, activates, refuses what cannot be, and retires a stolen key",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase
        const env = {
          DATABASE_URL: Redacted.value(database.url),
          DATABASE_OWNER_URL: Redacted.value(database.ownerUrl),
          BAILIWICK_KEYS: ring("k1"),
        }
        const home = yield* Processes.home
        const cli = (...args: ReadonlyArray<string>) => type(home, env, ["keys", ...args])
        const { keySet } = yield* SigningKeys
        const made = yield* scene
        yield* work
        const own = yield* consumer(made)
        yield* own.acknowledge
        const [first, second, third] = yield* keySet

        const announced = yield* cli("announce", "--in", "1h")
        assert.strictEqual(announced.code, 0, announced.stderr)
        assert.match(announced.stdout, new RegExp(`^${second} announced\n`))
        assert.match(announced.stdout, new RegExp(`\n${first} active +\\S+Z 1\n${second} published +\\S+Z 0\n`))
        assert.include(announced.stdout, `\npins for a new product: ${first},${second},${third}\n`)
        const [, expression] = readFileSync("examples/product/README.md", "utf8").match(
          /keys list \| sed -n '([^']+)'/,
        )!
        assert.strictEqual(
          execFileSync("sed", ["-n", expression!], { input: announced.stdout, encoding: "utf8" }),
          `${first},${second},${third}\n`,
        )
        const [again, missing] = yield* Effect.all([cli("announce"), cli("retire", second!)], { concurrency: 2 })
        assert.deepStrictEqual([again.code, again.stdout], [1, ""])
        assert.match(again.stderr, /under way/)
        assert.deepStrictEqual([missing.code, missing.stdout], [1, ""])
        assert.match(missing.stderr, /only a retiring key/)

        const waiting = yield* cli("activate")
        assert.strictEqual(waiting.code, 0, waiting.stderr)
        assert.include(
          waiting.stdout,
          `${made.project} waits for ${made.asking.issuer} ${made.asking.clientId}`,
        )
        // What the text says, a line a key.
        const told = lines((yield* cli("list", "--json")).stdout).map((line) => JSON.parse(line))
        assert.deepStrictEqual(told.map(({ kid, pin, projects, state }) => [kid, state, projects, pin]), [
          [first, "active", 1, 1],
          [second, "published", 0, 2],
          [third, "announced", 0, 3],
          [told[3].kid, "announced", 0, 4],
        ])
        assert.deepStrictEqual([told[0].transition, told[2].transition], [null, null])
        assert.include(waiting.stdout, `\npins for a new product: ${told.map(({ kid }) => kid).join(",")}\n`)
        assert.deepInclude(told[1].transition, { successor: second, untold: 0, switched: 0, left: 1 })
        const { asking, project } = made
        assert.deepStrictEqual(told[1].transition.waiting, [
          { project_id: project, consumers: [`${asking.issuer} ${asking.clientId}`] },
        ])
        assert.isBelow(Date.parse(told[1].transition.not_before), Date.parse(told[1].transition.deadline_at))
        const forced = yield* cli("activate", "--force")
        assert.strictEqual(forced.code, 0, forced.stderr)
        assert.include(forced.stdout, "1 projects switched, 0 to go")
        yield* work

        const stolen = yield* cli("compromise", second!, "--reason", "found in a log")
        assert.strictEqual(stolen.code, 0, stolen.stderr)
        const [head, ...rows] = lines((yield* cli("list")).stdout)
        const pinned = rows.pop()!
        const listed = [head!, ...rows].map((line) => line.split(/ +/))
        assert.deepStrictEqual(
          listed.map(([, state, , projects]) => [state, projects]),
          [
            ...[["state", "projects"], ["retiring", "0"], ["compromised", "0"], ["active", "1"]],
            ...[["announced", "0"], ["announced", "0"]],
          ],
        )
        assert.strictEqual(pinned, `pins for a new product: ${listed.slice(3).map(([kid]) => kid).join(",")}`)
        const { sql } = yield* Database
        assert.deepStrictEqual(
          yield* sql`select action, details ->> 'reason' as reason from audit_records
            where actor like 'operator:%' order by id`,
          [
            ...["announce", "activate", "force"].map((action) => ({ action: `signing-key.${action}`, reason: null })),
            { action: "signing-key.compromise", reason: "found in a log" },
          ],
        )
      }),
    slow * 2,
  )

  it.effect("the use of idle ring keys is counted in every column that names one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      // Thumbprints of signing keys, and the ring's own table.
      const others = [
        "signing_keys.kid",
        "lifecycle_messages.kid",
        "lifecycle_project_keys.kid",
        "lifecycle_key_places.kid",
      ]
      const columns = yield* sql<{ name: string }>`
        select table_name || '.' || column_name as name from information_schema.columns
        where table_schema = 'public' and column_name like '%kid' order by 1`
      assert.sameMembers(
        columns.map(({ name }) => name),
        [...keyColumns.map(([table, column]) => `${table}.${column}`), ...others, "vault_keys.kid"],
      )
      assert.deepStrictEqual(yield* neededBy("k1"), ["signing_keys"])
      assert.deepStrictEqual(yield* neededBy("k2"), [])
    }))

  it.effect(
    "a ring with another active key opens older values, and the doctor names what still needs the old key",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const { sql } = yield* Database
        const { signerOf } = yield* SigningKeys
        const made = yield* scene
        const before = yield* signerOf(made.project)
        const anew = SigningKeys.layer.pipe(
          Layer.provide(Vault.layer({ file: "/nowhere", keys: Redacted.make(ring("k2")) })),
          Layer.fresh,
        )
        const after = yield* SigningKeys.use((keys) => keys.signerOf(made.project)).pipe(Effect.provide(anew))
        assert.deepStrictEqual(
          yield* Effect.promise(() => after.sign("test", "x")),
          yield* Effect.promise(() => before.sign("test", "x")),
        )
        const home = yield* Processes.home
        const env = { DATABASE_URL: Redacted.value(url), BAILIWICK_KEYS: ring("k2") }
        const { stdout } = yield* type(home, env, ["doctor"])
        assert.match(stdout, /^ok +keys +2 in the ring and in the database, k2 is active$/m)
        assert.match(stdout, /^ok +keys +k1 is not active, and still needed by signing_keys$/m)
        assert.match(stdout, /^ok +signing keys +active for 0 days, 2 announced$/m)

        yield* sql`update signing_keys set vault_kid = 'k2' where vault_kid = 'k1'`
        yield* sql`update signing_keys set changed_at = changed_at - interval '366 days' where state = 'active'`
        const later = yield* type(home, env, ["doctor"])
        assert.match(later.stdout, /^ok +keys +k1 is needed by nothing: delete it from vault_keys and from the ring/m)
        assert.match(
          later.stdout,
          /^warn signing keys +\S+ has signed for 366 days: type "npx -y deno@2\.9\.6 task cli keys announce"$/m,
        )
      }),
    slow,
  )
})
