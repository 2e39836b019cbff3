/** One command on an empty home: servers of its own, a working demo, clean ends, and starts after unclean ones. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { locate } from "../../src/embedded/PostgresData.ts"
import { hangUpIsIgnored } from "../../src/process/Sighup.ts"
import { makeAuthority } from "../services/platform/Outbound/Certificates.ts"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { api } from "./support/ApiClient.ts"
import { feed, mailEvent } from "./support/EventFeed.ts"
import { cli, instance } from "./support/ProgramInstance.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"

const runtimeOf = (home: string) => JSON.parse(readFileSync(join(home, "runtime.json"), "utf8"))
const demoOf = (home: string) => JSON.parse(readFileSync(join(home, "demo.json"), "utf8")).accounts

/** Processes whose command line names this home. */
const left = (home: string) =>
  Effect.sync(() =>
    execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n").filter((line) =>
      line.includes(home) && !line.includes("ps -eo")
    )
  )

const mode = (path: string) => statSync(path).mode & 0o777

describe("an empty home", () => {
  it.live(
    "becomes a running instance whose demo works at once, and again after a stop and after a kill",
    () =>
      Effect.gen(function* () {
        const home = yield* emptyHome
        const authority = makeAuthority("Own")
        const ca = join(home, "ca.pem")
        writeFileSync(ca, authority.certificate)
        const program = yield* instance({ BAILIWICK_HOME: home, PORT: "0", WEBHOOKS_CA_FILE: ca }, { sources: true })
        yield* program.start()
        // A first start says what it is busy with; a later one, below, has nothing to say of it.
        assert.match(program.output(), /making the database in [^]*migrations to apply: \d+[^]*bailiwick ready on http/)
        assert.match(program.output(), /bailiwick ready on http:\/\/127\.0\.0\.1:\d+\n/)
        yield* until(
          "where to look next",
          Effect.sync(program.output),
          (said) => /\/v1\/docs[^]*demo\.json\n/.test(said),
        )
        assert.isBelow(Number(new URL(program.origin()).port), 32_768)
        const runtime = runtimeOf(home)
        assert.deepInclude(runtime, { pid: program.pid(), http_url: program.origin() })
        assert.deepStrictEqual([mode(join(home, "runtime.json")), mode(join(home, "demo.json"))], [0o600, 0o600])
        assert.strictEqual((yield* api(program.origin).get("/ready")).json.status, "ready")

        // As in the README: alice's key, a webhook, a test event, an event on the bus.
        const { alice, carol } = demoOf(home)
        const own = api(program.origin, { authorization: `Bearer ${alice.api_key}` })
        const target = yield* receiver(authority.issue("localhost"))
        const { id: hookId, path } = yield* hook(own, target, "/first", ["email.clicked"])
        assert.deepInclude((yield* own.post(`/v1/webhooks/${hookId}/test`)).json, { queued: true })
        yield* until("the sample", totals(own, hookId), ({ delivered }) => delivered === 1)
        const bus = yield* feed(Redacted.make(runtime.nats_url))
        yield* bus.events([mailEvent(alice.id, "1", "email.clicked")])
        yield* until("the event", totals(own, hookId), ({ delivered }) => delivered === 2)
        assert.deepStrictEqual(target.at(path).map(({ fault }) => fault), [null, null])
        // Plain http goes to loopback, which DEMO opens.
        const plain = yield* serve((request, response) =>
          request.resume().on("end", () => response.writeHead(200).end())
        )
        const second = yield* own.post("/v1/webhooks/", {
          url: `http://127.0.0.1:${plain.port}/`,
          events: ["email.clicked"],
        })
        assert.strictEqual(second.status, 201, second.text)
        yield* own.post(`/v1/webhooks/${second.json.id}/test`)
        yield* until("a request", Effect.sync(() => plain.requests.length), (n) => n === 1)

        // The command line finds the instance by its home, and makes a session for any account.
        const signedIn = yield* cli({ BAILIWICK_HOME: home }, "session", "--account", carol.id)
        assert.strictEqual(signedIn.code, 0, signedIn.output)
        const session = api(program.origin, { cookie: `mail_session=${signedIn.output.trim()}` })
        assert.strictEqual((yield* session.get("/v1/api-keys/")).status, 200)

        // A clean end within ten seconds leaves no process; the second start finds everything in place.
        const began = performance.now()
        assert.strictEqual(yield* program.end("SIGTERM"), 0)
        assert.isBelow(performance.now() - began, 10_000)
        assert.deepStrictEqual(yield* left(home), [])
        assert.isFalse(existsSync(join(home, "runtime.json")))

        yield* program.start()
        assert.notMatch(program.output(), /making the database|migrations to apply/)
        assert.deepStrictEqual(demoOf(home).alice, alice)
        assert.deepInclude(yield* totals(own, hookId), { all: 2, delivered: 2 })

        // A killed program leaves its servers and files; the next start takes them over.
        yield* program.end("SIGKILL")
        assert.isTrue(existsSync(join(home, "runtime.json")))
        yield* program.start()
        assert.strictEqual(runtimeOf(home).pid, program.pid())
        yield* own.post(`/v1/webhooks/${hookId}/test`)
        yield* until("a sample after the kill", totals(own, hookId), ({ delivered }) => delivered === 3)
        // SIGHUP, as of a closed terminal, ends the program too, except where it (and this run) was started under nohup.
        assert.strictEqual(yield* program.end(hangUpIsIgnored() ? "SIGTERM" : "SIGHUP"), 0)
        assert.deepStrictEqual(yield* left(home), [])
      }).pipe(Effect.scoped),
    240_000,
  )

  it.live(
    "belongs to one instance; two instances run side by side, and killed embedded servers come back",
    () =>
      Effect.gen(function* () {
        const started = Effect.gen(function* () {
          const home = yield* emptyHome
          const program = yield* instance({ BAILIWICK_HOME: home, PORT: "0", LOG_LEVEL: "warn" })
          yield* program.start()
          return { home, program }
        })
        const [one, two] = yield* Effect.all([started, started], { concurrency: 2 })
        const [a, b] = [runtimeOf(one.home), runtimeOf(two.home)]
        for (const name of ["pid", "http_url", "database_url", "nats_url"]) assert.notStrictEqual(a[name], b[name])
        const keyed = (to: typeof one, of: typeof one) =>
          api(to.program.origin, { authorization: `Bearer ${demoOf(of.home).alice.api_key}` }).get("/v1/webhooks/")
        assert.strictEqual((yield* keyed(one, one)).status, 200)
        assert.strictEqual((yield* keyed(two, two)).status, 200)
        assert.strictEqual((yield* keyed(one, two)).status, 401)
        const third = yield* Effect.exit(
          Effect.flatMap(instance({ BAILIWICK_HOME: one.home, PORT: "0" }), (program) => program.start()),
        )
        assert.include(JSON.stringify(third), `in use by process ${one.program.pid()}`)
        assert.strictEqual((yield* keyed(one, one)).status, 200)

        // An embedded server that is killed comes back at the same address, with its data.
        const killed = Effect.fnUntraced(function* (name: string, pid: string) {
          yield* Effect.sync(() => process.kill(Number(pid), "SIGKILL"))
          const said = new RegExp(`embedded ${name} ended with SIGKILL: starting it again`)
          yield* until("the loss", Effect.sync(two.program.output), (output) => said.test(output))
          yield* until("its return", api(two.program.origin, {}).get("/ready"), ({ status }) => status === 200)
        })
        yield* killed("nats-server", readFileSync(join(two.home, "nats", "pid"), "utf8"))
        const data = Option.getOrThrow(yield* locate(two.home))
        yield* killed("PostgreSQL", readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]!)
        assert.strictEqual((yield* keyed(two, two)).status, 200)
        assert.strictEqual(yield* two.program.end("SIGTERM"), 0)
        assert.deepStrictEqual(yield* left(two.home), [])
      }).pipe(Effect.scoped),
    240_000,
  )
})
