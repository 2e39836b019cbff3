/** Cases of test/e2e/Connections: descriptors used up, a listener that breaks, and the last requests of a stop. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import process from "node:process"
import { home as emptyHome, runtime } from "../../support/Processes.ts"
import type { Reply } from "./ApiClient.ts"
import { instance } from "./ProgramInstance.ts"
import { until } from "./Until.ts"
import { fixture } from "./ProgramFixture.ts"

/** The run's runtime with 300 descriptors, which it cannot raise. */
const with300 = ["/bin/sh", "-c", `ulimit -n 300 && exec "$0" "$@"`, ...runtime()]

/** Deno has two servers (`NODE_HTTP`), Node one. */
export const denoRuns = "Deno" in globalThis && (process.env["PROGRAM_NODE"] ?? "") === ""

const canLimit = existsSync("/usr/bin/prlimit")

/**
 * Opens bare connections that send `text`, all at once; returns how many the program has answered, closed, and closed
 * without the 400 of a text that is late.
 */
const connections = (origin: string, count: number, text: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(origin)
      const sockets: Array<Socket> = []
      let closed = 0
      let answered = 0
      let late = 0
      for (let i = 0; i < count; i++) {
        const socket = connect({ host: hostname, port: Number(port) }, () => void socket.write(text))
        socket.on("error", () => {})
        socket.on("close", () => closed++)
        socket.once("data", (chunk: Buffer) => {
          answered++
          if (chunk.toString("latin1").startsWith("HTTP/1.1 400 ")) late++
        })
        sockets.push(socket)
      }
      return {
        answered: Effect.sync(() => answered),
        closed: Effect.sync(() => closed),
        displaced: Effect.sync(() => closed - late),
        leave: () => sockets.forEach((socket) => socket.destroy()),
      }
    }),
    ({ leave }) => Effect.sync(leave),
  )

/** One connection; each call sends `text` and returns the next whole answer, or what there was when it ended. */
const kept = (origin: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const { hostname, port } = new URL(origin)
        return connect({ host: hostname, port: Number(port) })
      }),
      (socket) => Effect.sync(() => socket.destroy()),
    ),
    (socket) => {
      let text = ""
      let ended: string | null = null
      let wake = () => {}
      socket.on("error", ({ message }) => ended = message)
      socket.on("close", () => {
        ended ??= "closed"
        wake()
      })
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1")
        wake()
      })
      const next = () => {
        const head = text.indexOf("\r\n\r\n")
        const length = Number(/^content-length: (\d+)/im.exec(text.slice(0, head))?.[1] ?? 0)
        if (ended === null && (head < 0 || text.length < head + 4 + length)) return undefined
        const whole = head < 0 ? ended ?? "" : text.slice(0, head + 4 + length)
        text = text.slice(whole.length)
        return whole
      }
      const answer = Effect.callback<string>((resume) => {
        wake = () => {
          const whole = next()
          if (whole === undefined) return
          wake = () => {}
          resume(Effect.succeed(whole))
        }
        wake()
      })
      const send = (bytes: string) => Effect.sync(() => void socket.write(bytes))
      return { send, answer, ask: (bytes: string) => Effect.andThen(send(bytes), answer) }
    },
  )

/** A request over a kept connection. */
const request = (origin: string, line: string, headers: ReadonlyArray<string> = [], body = "") =>
  [
    `${line} HTTP/1.1`,
    `Host: ${new URL(origin).host}`,
    ...headers,
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${body.length}`]),
    "",
    body,
  ].join("\r\n")

/** An answer; requested again, as a client does, where the connection gave way to another one. */
const asked = (ask: Effect.Effect<Reply>) =>
  ask.pipe(Effect.catchDefect((reset) => Effect.fail(reset)), Effect.retry({ times: 3 }))

/** Processes whose command line names this home. */
const left = (home: string) =>
  Effect.sync(() =>
    execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n").filter((line) =>
      line.includes(home) && !line.includes("ps -eo")
    )
  )

/** Declares the cases for the server that `nodeHttp` chooses: `true` or `false`, as in the environment. */
export const connectionCases = (nodeHttp: string): void =>
  void describe(`connections, NODE_HTTP=${nodeHttp}`, () => {
    it.live(
      "400 half-open connections at 300 descriptors do not keep the program from answering others",
      () =>
        Effect.gen(function* () {
          const { account, api, instance } = yield* fixture({ NODE_HTTP: nodeHttp }, { command: with300 })
          const known = yield* account()
          const half = yield* connections(instance.origin(), 400, "GET / HTTP/1.1\r\nX: ")
          // More than fit: the oldest have given way.
          yield* until("room", half.closed, (closed) => closed >= 250, 30)
          for (let times = 0; times < 5; times++) {
            assert.strictEqual((yield* asked(api.get("/health"))).status, 200)
            assert.strictEqual((yield* asked(known.api.get("/v1/webhooks/"))).status, 200)
          }
          assert.strictEqual((yield* asked(api.get("/ready"))).json.status, "ready")
          // The rest end with the deadline, ten seconds from their start.
          yield* until("the deadline", half.closed, (closed) => closed === 400, 30)
          assert.strictEqual((yield* asked(known.api.get("/v1/webhooks/"))).status, 200)
          const again = yield* connections(instance.origin(), 400, "GET / HTTP/1.1\r\nX: ")
          yield* until("room", again.closed, (closed) => closed >= 250, 30)
          again.leave()
          assert.strictEqual((yield* asked(known.api.get("/v1/webhooks/"))).status, 200)
        }).pipe(Effect.scoped),
      120_000,
    )

    it.live(
      "slow bodies of one account at 300 descriptors do not keep the program from answering another",
      () =>
        Effect.gen(function* () {
          const { account, instance } = yield* fixture({ NODE_HTTP: nodeHttp }, { command: with300 })
          const known = yield* account()
          const hostile = yield* account()
          const { host } = new URL(instance.origin())
          const post = `POST /v1/webhooks/ HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${hostile.key}\r\n` +
            `Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
          const slow = yield* connections(instance.origin(), 200, post)
          // 150 fit: the others were refused, or gave way.
          yield* until("no room", slow.displaced, (displaced) => displaced >= 50, 30)
          // A connection gives way once its credential is known and its body is awaited. Until then all may be busy, and a
          // new one is told 503 and to come back: on a slow machine between two answers, too.
          let answers = 0
          const answered = ({ status }: Reply) => status === 200 && ++answers === 10
          yield* until("ten answers", asked(known.api.get("/v1/webhooks/")), answered, 30)
          slow.leave()
          assert.strictEqual((yield* asked(hostile.api.get("/v1/webhooks/"))).status, 200)
        }).pipe(Effect.scoped),
      120_000,
    )

    it.live.skipIf(!canLimit)(
      "a process that has run out of descriptors accepts connections again once there are some",
      () =>
        Effect.gen(function* () {
          const { account, instance } = yield* fixture({ NODE_HTTP: nodeHttp, HTTP_CONNECTIONS: "4000" })
          const known = yield* account()
          const pid = instance.pid()
          // Its limit of connections was computed with more descriptors than it has now.
          const limit = readdirSync(`/proc/${pid}/fd`).length + 20
          execFileSync("prlimit", ["--pid", String(pid), `--nofile=${limit}:`])
          const half = yield* connections(instance.origin(), 100, "GET / HTTP/1.1\r\nX: ")
          // On Deno a connection gives way as soon as a descriptor is missing, so the count reaches the limit for an
          // instant only; on Node the count stays there.
          const held = Effect.map(half.closed, (closed) => ({ closed, open: readdirSync(`/proc/${pid}/fd`).length }))
          yield* until("no descriptor", held, ({ closed, open }) => closed > 0 || open >= limit, 30)
          half.leave()
          // A new connection each time: one that a stalled listener had queued is reset when the listener opens again.
          yield* until(
            "an answer",
            Effect.scoped(
              Effect.flatMap(kept(instance.origin()), ({ ask }) => ask(request(instance.origin(), "GET /health"))),
            ),
            (answer) => answer.startsWith("HTTP/1.1 200 "),
            60,
          )
          assert.strictEqual((yield* known.api.get("/v1/webhooks/")).status, 200)
        }).pipe(Effect.scoped),
      120_000,
    )

    it.live("idle connections give way to new ones", () =>
      Effect.gen(function* () {
        const { api, instance } = yield* fixture({ NODE_HTTP: nodeHttp, HTTP_CONNECTIONS: "10" })
        const { host } = new URL(instance.origin())
        const idle = yield* connections(instance.origin(), 10, `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
        yield* until("ten answers", idle.answered, (answered) => answered === 10)
        for (let times = 0; times < 5; times++) {
          assert.strictEqual((yield* api.get("/health", { headers: { connection: "close" } })).status, 200)
        }
        assert.isAtLeast(yield* until("room", idle.closed, (closed) => closed > 0), 1)
      }).pipe(Effect.scoped), 120_000)

    it.live("after SIGTERM a kept connection is answered 503, with what to do next", () =>
      Effect.gen(function* () {
        const { instance } = yield* fixture({ NODE_HTTP: nodeHttp })
        const origin = instance.origin()
        const connection = yield* kept(origin)
        const ask = connection.ask(request(origin, "GET /health"))
        assert.match(yield* ask, /^HTTP\/1.1 200 /)
        const ending = yield* Effect.forkChild(instance.end("SIGTERM"), { startImmediately: true })
        const last = yield* until("the last answer", ask, (answer) => !answer.startsWith("HTTP/1.1 200 "))
        assert.match(last, /^HTTP\/1.1 503 /)
        assert.match(last, /\r\nretry-after: 1\r\n/i)
        assert.match(last, /\r\nconnection: close\r\n/i)
        assert.strictEqual(yield* Fiber.join(ending), 0)
      }).pipe(Effect.scoped), 120_000)

    it.live("after SIGTERM a body that is still arriving is answered 503, with what to do next", () =>
      Effect.gen(function* () {
        const { account, instance } = yield* fixture({ NODE_HTTP: nodeHttp })
        const { api, key } = yield* account()
        const origin = instance.origin()
        const headers = [`Authorization: Bearer ${key}`, "Content-Type: application/json", "Content-Length: 100"]
        const { answer, send } = yield* kept(origin)
        yield* send(`${request(origin, "POST /v1/webhooks/", headers)}{`)
        // Answered after what was sent before: the body is awaited by then.
        for (let times = 0; times < 2; times++) {
          assert.strictEqual((yield* api.get("/v1/webhooks/")).status, 200)
        }
        const ending = yield* Effect.forkChild(instance.end("SIGTERM"), { startImmediately: true })
        const last = yield* answer
        assert.match(last, /^HTTP\/1.1 503 /)
        assert.match(last, /\r\nretry-after: 1\r\n/i)
        assert.match(last, /\r\nconnection: close\r\n/i)
        assert.match(last, /"code":"dependency_unavailable"/)
        assert.strictEqual(yield* Fiber.join(ending), 0)
      }).pipe(Effect.scoped), 120_000)

    it.live(
      "one connection serves 100 POSTs of 1 KB and of 100 KB, and goes on after early refusals (401, 404, 405, 429, 413 of Deno's own server)",
      () =>
        Effect.gen(function* () {
          const { account, instance } = yield* fixture({ NODE_HTTP: nodeHttp, REFUSED_CREDENTIALS_RATE: "5" })
          const { key } = yield* account()
          const origin = instance.origin()
          const known = [`Authorization: Bearer ${key}`]
          const unknown = ["Authorization: Bearer unknown"]
          const { ask } = yield* kept(origin)
          const ownServer = denoRuns && nodeHttp === "false"
          const seen = new Set<string>()
          const checked = Effect.fnUntraced(function* (expected: string, bytes: string) {
            const answer = yield* ask(bytes)
            const what = `${bytes.slice(0, 200)}, ${bytes.length} bytes: ${answer.slice(0, 600)}`
            assert.match(answer, new RegExp(`^HTTP/1.1 (${expected}) `), what)
            assert.notMatch(answer, /^connection: close/im, what)
            seen.add(answer.slice(9, 12))
          })
          const status = (expected: string, line: string, headers: Array<string>, body = "") =>
            checked(expected, request(origin, line, headers, body))
          const chunked = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
          const large = `${request(origin, "POST /v1/webhooks/", [...known, ...chunked])}${
            `4000\r\n${"x".repeat(0x4000)}\r\n`.repeat(80)
          }0\r\n\r\n`
          for (const length of [1_000, 100_000]) {
            const body = JSON.stringify({ filler: "x".repeat(length) })
            // Read whole, and refused by the contract.
            for (let n = 0; n < 100; n++) {
              yield* status("422", "POST /v1/webhooks/", known, body)
            }
            for (let n = 0; n < 5; n++) {
              yield* status("404", "POST /v1/nothing/", known, body)
              yield* status("405", "POST /health", known, body)
              yield* status("401", "POST /v1/webhooks/", [], body)
              // The limit of refused credentials, until the minute is over.
              for (let again = 0; again < 2; again++) {
                yield* status("401|429", "POST /v1/webhooks/", unknown, body)
              }
              if (ownServer) {
                yield* checked("413", large)
              }
              yield* status("422", "POST /v1/webhooks/", known, body)
              yield* status("200", "GET /v1/webhooks/", known)
            }
          }
          assert.sameMembers([...seen], ["200", "401", "404", "405", ...(ownServer ? ["413"] : []), "422", "429"])
          if (ownServer) {
            return
          }
          // node:http ends the connection of so large a body, and says so (src/http/listener/OnNode.ts).
          const { ask: once } = yield* kept(origin)
          assert.match(yield* once(large), /^HTTP\/1.1 413 [^]*\r\nconnection: close\r\n/i)
        }).pipe(Effect.scoped),
      120_000,
    )

    it.live.each(["listener", "everything"])(
      "the program's end by a fault (%s) leaves no server behind",
      (fault) =>
        Effect.gen(function* () {
          const home = yield* emptyHome
          const program = yield* instance(
            { BAILIWICK_HOME: home, PORT: "0", LOG_LEVEL: "warn", NODE_HTTP: nodeHttp, BREAKS: fault },
            { module: "test/e2e/support/BrokenMain.ts" },
          )
          yield* program.start()
          yield* until(
            "runtime.json",
            Effect.sync(() =>
              existsSync(join(home, "runtime.json"))
            ),
            (there) =>
              there,
          )
          const code = yield* program.end("SIGUSR2" as NodeJS.Signals)
          assert.strictEqual(code, 1)
          yield* until("the servers' end", left(home), (lines) => lines.length === 0, 30)
          assert.isFalse(existsSync(join(home, "runtime.json")))
        }).pipe(Effect.scoped),
      120_000,
    )
  })
