/** Commands that put data in (directory lines, messages, sessions), and their effect on the streams. */
import { assert, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { Buffer } from "node:buffer"
import { execFileSync } from "node:child_process"
import { closeSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import * as EmbeddedNats from "../../../src/embedded/EmbeddedNats.ts"
import { manage } from "../../support/Broker.ts"
import { keepFrozen } from "../../support/Frozen.ts"
import * as Processes from "../../support/Processes.ts"
import { account, uuid } from "../../support/DirectoryLines.ts"
import { relay } from "../../support/TcpRelay.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { lines, servers, slow, type, written } from "./Terminal.ts"

layer(Layer.merge(TestDatabase.layer, TestBus.layer), { excludeTestServices: true })("cli", (it) => {
  it.effect(
    "applies a directory's file around its faulty lines, and ignores the file the second time",
    () =>
      Effect.gen(function* () {
        const env = yield* servers
        const home = yield* Processes.home
        // Kinds of both families, in mixed order.
        const good = Array.from({ length: 150 }, (_, i) =>
          i % 50 === 0
            ? JSON.stringify({
              kind: "person",
              id: `p${i}`,
              version: 1,
              issuer: "i",
              subject: `${i}`,
              status: "active",
            })
            : account(uuid(1000 + i), 1))
        const bad = [account(uuid(1), 0), "not json", account(uuid(2), 1, { email: 7 })]
        const file = yield* written(home, [...good.slice(0, 120), "", ...bad, ...good.slice(120)].join("\n"))
        const { NATS_URL: _, ...database } = env
        const first = yield* type(home, database, ["directory", "apply", file])
        assert.strictEqual(first.code, 1)
        assert.strictEqual(first.stderr, "")
        const told = lines(first.stdout)
        assert.match(told[0]!, /^line 122: invalid_line: .*version/)
        assert.match(told[1]!, /^line 123: malformed_json: /)
        assert.match(told[2]!, /^line 124: invalid_line: .*email/)
        assert.deepStrictEqual(told.slice(3), ["applied 150, ignored 0, rejected 3"])

        const latin = Buffer.from(`${account(uuid(3), 1)}\n${account(uuid(4), 1, { name: "M\u00fcller" })}\n`, "latin1")
        const [again, unread] = yield* Effect.all([
          type(home, env, ["directory", "apply", "-"], yield* written(home, good.join("\r\n"))),
          type(home, env, ["directory", "apply", yield* written(home, latin)]),
        ], { concurrency: 2 })
        assert.strictEqual(unread.code, 1)
        assert.strictEqual(unread.stdout, "applied 0, ignored 0, rejected 0\n")
        assert.match(unread.stderr, /^cannot read .*: it is not UTF-8\n$/)
        assert.deepStrictEqual(again, { code: 0, stdout: "applied 0, ignored 150, rejected 0\n", stderr: "" })
        const [count] = yield* (yield* Database).sql`
        select (select count(*)::int from accounts) as accounts, (select count(*)::int from people) as people`
        assert.deepStrictEqual(count, { accounts: 147, people: 3 })
      }),
    slow,
  )

  it.effect("publishes lines once, and shows each arrival on one line", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      // A broker without a stream yet: the first message must not be missed either.
      const { url } = yield* TestBus.make
      const env = { ...yield* servers, NATS_URL: Redacted.value(url) }
      const follower = yield* Processes.start({
        module: "src/cli/main.ts",
        args: ["tail", "intake.v1.>"],
        env: { ...env, BAILIWICK_HOME: home },
      })
      yield* follower.line(/following EVENTS, DIRECTORY_IN/)
      const event = (id: string) => JSON.stringify({ account_id: "a", id, subject: "\u202eturned\u001b[31m" })
      const file = yield* written(home, [event("1"), event("2"), "", event("1"), "\u001b[31mjunk", "last"].join("\n"))
      const subject = "intake.v1.mail-events.sent"
      const published = yield* type(home, env, ["publish", subject, file])
      assert.deepStrictEqual(published, { code: 0, stdout: "published 4, duplicates 1, failed 0\n", stderr: "" })
      yield* follower.line(/ last\n/)
      const shown = lines(follower.output()).filter((line) => line.includes(subject))
      assert.strictEqual(shown.length, 4, "the dropped repeat is not on the stream")
      assert.match(
        shown[0]!,
        /^\d{4}-\d\d-\d\dT[\d:.]+Z EVENTS intake\.v1\.mail-events\.sent \{"account_id":"a","id":"1"/,
      )
      assert.include(shown[0]!, "\\u202eturned\\u001b[31m")
      assert.match(shown[2]!, / \\u001b\[31mjunk$/)

      // A stream that was made again counts from 1.
      yield* manage(url, (manager) => manager.streams.delete("EVENTS"))
      const anew = yield* type(home, env, ["publish", subject, yield* written(home, "first again\nlast again\n")])
      assert.strictEqual(anew.stdout, "published 2, duplicates 0, failed 0\n")
      yield* follower.line(/ first again\n.* last again\n/)

      // For a child that was sent a signal, Deno reports the signal whatever its exit code.
      yield* Effect.sync(() => process.kill(follower.pid, "SIGINT"))
      assert.strictEqual(yield* follower.exited, 0)

      const [lost, large] = yield* Effect.all([
        type(home, env, ["publish", "no.such.stream", file]),
        type(home, env, ["publish", subject, yield* written(home, `${event("3")}\n${"x".repeat(1_100_000)}\n`)]),
      ], { concurrency: 2 })
      assert.strictEqual(lost.code, 1)
      assert.strictEqual(
        lost.stdout,
        "published 0, duplicates 0, failed 4\n",
        "the last line, which nothing ends, is not tried",
      )
      assert.match(lost.stderr, /^stopped at line 1, .*no-stream.*\n$/)
      assert.strictEqual(large.code, 1)
      assert.strictEqual(large.stdout, "published 1, duplicates 0, failed 1\n")
      assert.match(large.stderr, /^line 2: size: /)
    }), slow)

  it.effect(
    "publishes lines as they come, and reports those with an unknown outcome",
    () =>
      Effect.gen(function* () {
        const home = yield* Processes.home
        const { pid, url } = yield* EmbeddedNats.start({ home: yield* Processes.home })
        const pipe = join(home, "pipe")
        execFileSync("mkfifo", [pipe])
        const fd = openSync(pipe, "r+")
        const subject = "intake.v1.mail-events.sent"
        // The stream has the first message before its publisher has the acknowledgement, so the test sees it pass.
        const broker = new URL(Redacted.value(url))
        const network = yield* relay(new URL(broker))
        const acknowledged = yield* Deferred.make<void>()
        network.onAnswer((bytes) => {
          if (/"stream":"EVENTS", ?"seq":1\b/.test(String(bytes))) Deferred.doneUnsafe(acknowledged, Effect.void)
        })
        broker.port = String(network.port)
        const publishing = yield* Effect.forkScoped(
          type(home, { NATS_URL: broker.href }, ["publish", subject, "-"], pipe),
        )
        yield* Effect.sync(() => writeSync(fd, "first\n"))
        yield* Deferred.await(acknowledged)
        yield* keepFrozen(pid)
        yield* Effect.sync(() => {
          writeSync(fd, "second\nthird\n")
          closeSync(fd)
        })
        const { code, stderr, stdout } = yield* Fiber.join(publishing)
        assert.deepStrictEqual([code, stdout], [1, "published 1, duplicates 0, failed 0, unknown 2\n"])
        assert.match(stderr, /stopped after line 3: it is not known whether lines 2 to 3 were published: /)
      }).pipe(Effect.scoped),
    slow,
  )

  it.effect("prints a session that the instance's verifier accepts, and nothing else", () =>
    Effect.gen(function* () {
      const home = yield* Processes.home
      const without = yield* type(home, {}, ["session", "--account", uuid(1)])
      assert.strictEqual(without.code, 1)
      assert.match(without.stderr, /^BAILIWICK_HOME=.* has no embedded issuer: .*DEMO/)

      const issuer = EmbeddedIssuer.layer({ home, issuer: "https://mail.example/dev/issuer" })
      yield* Effect.gen(function* () {
        const { cookieIssuer } = yield* EmbeddedIssuer
        const seconds = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1000))
        const before = yield* seconds
        const { code, stderr, stdout } = yield* type(
          home,
          { PUBLIC_URL: "https://mail.example" },
          ["session", "--account", uuid(1), "--authenticated-ago", "10 minutes", "--ttl", "5m"],
        )
        assert.deepStrictEqual([code, stderr], [0, ""])
        assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
        const session = yield* Effect.provide(
          Effect.flatMap(Cookies, (cookies) => cookies.verify(stdout.trim())),
          Cookies.layer([cookieIssuer]),
        )
        assert.strictEqual(session.accountId, uuid(1))
        assert.isAtLeast(session.authTime!, before - 600)
        assert.isAtMost(session.authTime!, (yield* seconds) - 600)
      }).pipe(Effect.provide(issuer))
    }), slow)
})
