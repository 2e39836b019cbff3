/** Finding the instance, and errors before a command does anything. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { readdirSync } from "node:fs"
import process from "node:process"
import { Database } from "../../../services/platform/database/Database.ts"
import * as Home from "../../../src/embedded/Home.ts"
import { newest } from "../../../src/Migrations.ts"
import * as Processes from "../../support/Processes.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { lines, servers, slow, type, unread, written } from "./Terminal.ts"

/** Commands that list and show nothing: they change something, or print one text that another program reads. */
const withoutJson = [
  "api_keys_revoke",
  "backup",
  "deliveries_cancel",
  "deliveries_replay",
  "deliveries_retry",
  "dead_letters_replay",
  "directory_apply",
  "evidence_pack",
  "installation_open",
  "installation_supply",
  "keys_activate",
  "keys_announce",
  "keys_compromise",
  "keys_publish",
  "keys_retire",
  "log_add_key",
  "log_release",
  "log_retire_key",
  "migrate",
  "nats_permissions",
  "publish",
  "queues_kick",
  "queues_pause",
  "queues_resume",
  "reset",
  "restore",
  "rollout_fail",
  "rollout_hold",
  "rollout_release",
  "session",
  "signals_release",
  "start",
  "token",
  "upgrade_finish",
  "webhooks_delete",
  "webhooks_test",
]

/** The commands of a script that completes them, each with the text that completes its flags. */
const completedBy = (script: string) => {
  const all = [...script.matchAll(/^_cli_([a-z_]+)\(\)\n\{\n([\s\S]*?)^\}/gm)]
    .map(([, name, text]) => [name!, text!] as const)
  return all.filter(([name]) => !all.some(([other]) => other.startsWith(`${name}_`)))
}

layer(Layer.merge(TestDatabase.layer, TestBus.layer), { excludeTestServices: true })("cli", (it) => {
  it.effect(
    "finds the instance that runs in its home, or prints what to type",
    () =>
      Effect.gen(function* () {
        const { DATABASE_OWNER_URL, DATABASE_URL, NATS_URL } = yield* servers
        const home = yield* Processes.home
        const nobody = yield* type(home, {}, ["migrate"])
        assert.strictEqual(nobody.code, 1)
        assert.strictEqual(nobody.stdout, "")
        assert.match(
          nobody.stderr,
          /^no instance runs with BAILIWICK_HOME=.*npx -y deno@2\.9\.6 task start.*DATABASE_URL\n$/,
        )

        yield* Home.open(home)
        yield* Home.publish(home, {
          pid: process.pid,
          http_url: "http://127.0.0.1:1",
          database_url: DATABASE_URL,
          database_owner_url: DATABASE_OWNER_URL,
          nats_url: NATS_URL,
        })
        const [migrated, shown, logKey, recorded, unreachable] = yield* Effect.all([
          type(home, {}, ["migrate"]),
          type(home, {}, ["installation", "show", "--json"]),
          type(home, {}, ["log", "key", "--json"]),
          type(home, {}, ["audit", "--json"]),
          type(home, { DATABASE_URL: "postgres://someone:the-password@127.0.0.1:9/nowhere" }, ["audit"]),
        ], { concurrency: 2 })
        assert.deepStrictEqual(migrated, {
          code: 0,
          stdout: "nothing to apply, the schema is up to date\n",
          stderr: "",
        })
        const { epoch, missing, state } = JSON.parse(shown.stdout)
        assert.deepStrictEqual({ epoch, missing, state }, { epoch: 1, missing: [], state: "open" })
        assert.strictEqual(logKey.stderr, "the log has not begun\n")
        assert.deepStrictEqual(recorded, { code: 0, stdout: "", stderr: "" })
        assert.strictEqual(unreachable.code, 1)
        assert.match(unreachable.stderr, /^cannot use the database at 127\.0\.0\.1:9\/nowhere: .*\n$/)
        assert.notInclude(unreachable.stderr, "the-password")
      }),
    slow,
  )

  it.effect(
    "migrates an empty database once, and names the command where it is not migrated",
    () =>
      Effect.gen(function* () {
        const env = yield* servers
        const home = yield* Processes.home
        const { owner } = yield* Database
        yield* owner`drop schema public cascade`
        yield* owner`create schema public`
        const [early, looked] = yield* Effect.all([type(home, env, ["audit"]), type(home, env, ["doctor"])], {
          concurrency: 2,
        })
        assert.strictEqual(early.code, 1)
        assert.match(early.stderr, /^the database: .*type "npx -y deno@2\.9\.6 task cli migrate"\n$/)
        assert.match(looked.stdout, new RegExp(`^FAIL schema .*migration 0 of ${newest} .*migrate`, "m"))
        const applied = yield* type(home, env, ["migrate"])
        assert.strictEqual(applied.code, 0, applied.stderr)
        const files = readdirSync("migrations").map((name) => `applied ${name.replace(/\.ts$/, "")}`).sort()
        assert.deepStrictEqual(lines(applied.stdout), files)
        assert.deepStrictEqual(yield* type(home, env, ["migrate"]), {
          code: 0,
          stdout: "nothing to apply, the schema is up to date\n",
          stderr: "",
        })
      }),
    slow,
  )

  it.effect("ends well when its reader is gone, but not with half of a backup", () =>
    Effect.gen(function* () {
      const env = yield* servers
      const home = yield* Processes.home
      const [backup, other] = yield* Effect.all([
        unread(home, env, ["backup", "-"]),
        unread(home, env, ["nats", "permissions"]),
      ], { concurrency: 2 })
      assert.deepStrictEqual(backup, {
        code: 1,
        stderr: "no backup was made: the reader of standard output ended early\n",
      })
      assert.deepStrictEqual(other, { code: 0, stderr: "" })
    }), slow)

  it.effect("answers a wrong invocation in one line, and --help everywhere", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const taken = yield* written(home, "a backup of before")
      const [unknown, missing, variable, backup, help, token] = yield* Effect.all([
        type(home, {}, ["unknown\u001b[31m"]),
        type(home, {}, ["session"]),
        type(home, { NATS_URL: "nonsense" }, ["tail"]),
        type(home, {}, ["backup", taken]),
        type(home, {}, ["dead-letters", "replay", "--help"]),
        type(home, {}, ["token", "--help"]),
      ], { concurrency: 2 })
      for (const { code, stderr, stdout } of [unknown, missing, variable, backup]) {
        assert.strictEqual(code, 1)
        assert.strictEqual(stdout, "")
        assert.strictEqual(lines(stderr).length, 1, stderr)
        assert.notInclude(stderr, "\u001b")
      }
      assert.strictEqual(backup.stderr, `${taken} exists already: name another file, or add --force\n`)
      assert.include(missing.stderr, "--account")
      assert.include(missing.stderr, "npx -y deno@2.9.6 task cli session --help")
      assert.match(variable.stderr, /^NATS_URL: .*for example NATS_URL=nats:/)
      assert.strictEqual(help.code, 0)
      assert.include(help.stdout, "--since")
      for (const said of ["service-management", "bailiwick-cli", "0s", "10m, at most 24h"]) {
        assert.include(token.stdout, `(default ${said})`)
      }
    }), slow)

  it.effect(
    "completes commands and flags in bash, --json of every command that lists or shows among them",
    () =>
      Effect.gen(function* () {
        const home = yield* Processes.home
        const script = yield* type(home, {}, ["--completions", "bash"])
        assert.strictEqual(script.code, 0, script.stderr)
        const completed = Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
          const line = words.join(" ")
          const at = words.length - 1
          const asked = `${script.stdout}
          COMP_WORDS=(${line}) COMP_CWORD=${at} COMP_LINE="${line}" COMP_POINT=${line.length}
          _cli cli "${words[at]}" "${words[at - 1]}"
          echo "\${COMPREPLY[@]}"`
          const module = yield* written(home, asked)
          const shell = yield* Processes.start({ command: ["bash"], module, env: {} })
          yield* shell.exited
          return shell.output().trim()
        }, Effect.scoped)
        assert.strictEqual(yield* completed(["cli", "webh"]), "webhooks")
        assert.strictEqual(yield* completed(["cli", "webhooks", "rot"]), "rotate-secret")
        assert.include(yield* completed(["cli", "listen", "--st"]), "--state")
        const commands = completedBy(script.stdout)
        assert.isAbove(commands.length, 60)
        const without = commands.filter(([, flags]) => !flags.includes("--json")).map(([name]) => name)
        assert.sameMembers(without, withoutJson, "give each command that lists or shows something `--json`")
      }),
    slow,
  )
})
