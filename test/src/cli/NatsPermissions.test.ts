import { assert, layer } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import { natsBinary } from "../../../src/embedded/NatsBinary.ts"
import { permissions } from "../../../src/cli/NatsPermissions.ts"

const users = [...permissions.matchAll(/user: (\w+)/g)].map(([, user]) => user!)
const password = "p-word"

/** nats-server with exactly the printed block. */
const server = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-permissions-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true })),
  )
  const port = yield* freePort()
  const conf = join(home, "nats.conf")
  writeFileSync(join(home, "users.conf"), permissions)
  writeFileSync(conf, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${home}" }\ninclude users.conf\n`)
  const env = Object.fromEntries(users.map((user) => [`NATS_${user.toUpperCase()}_PASSWORD`, password]))
  const program = yield* natsBinary(home)
  yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof spawn>>((resume) => {
      const child = spawn(program, ["-c", conf], {
        env: { ...process.env, ...env },
        stdio: ["ignore", "ignore", "pipe"],
      })
      child.stderr.on("data", (chunk) => String(chunk).includes("Server is ready") && resume(Effect.succeed(child)))
      child.once("exit", (code) => resume(Effect.die(new Error(`nats-server ended with ${code}`))))
    }),
    (child) =>
      Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      }),
  )
  return port
})

const as = (port: number, user: string) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      connect({
        servers: `127.0.0.1:${port}`,
        user,
        pass: password,
        timeout: 15_000,
        ...(user === "bailiwick" ? {} : { inboxPrefix: `_INBOX_${user}` }),
      })
    ),
    (nc) => Effect.promise(() => nc.close()),
  )

/** Whether the broker refuses the call by its permissions; any other failure is a defect. */
const refused = (what: () => Promise<unknown>) =>
  Effect.promise(() =>
    what().then(() => false, (error: Error) => {
      if (/permissions violation/i.test(`${error.message} ${String(error.cause)}`)) return true
      throw error
    })
  )

layer(Layer.empty, { excludeTestServices: true })("cli nats permissions", (it) => {
  it.effect("a broker with the printed users lets each publish and read its own subjects only", () =>
    Effect.gen(function* () {
      const port = yield* server
      const program = yield* as(port, "bailiwick")
      const manager = yield* Effect.promise(() => jetstreamManager(program))
      yield* Effect.promise(async () => {
        await manager.streams.add({
          name: "DIRECTORY_IN",
          subjects: ["intake.v1.directory.*", "intake.v1.identity-directory.*"],
        })
        await manager.streams.add({ name: "EVENTS", subjects: ["intake.v1.mail-events.*", "intake.v1.notifications"] })
        await manager.streams.add({ name: "TRANSFERS", subjects: ["transfers.v1.*.*"] })
        await manager.consumers.add("TRANSFERS", { durable_name: "transfers", ack_policy: "explicit" })
        await jetstream(program).publish("transfers.v1.d.pending", "told")
      })
      const subjects = {
        mail_events: "intake.v1.mail-events.sent",
        notifications: "intake.v1.notifications",
        mail_directory: "intake.v1.directory.account",
        identity_directory: "intake.v1.identity-directory.person",
      }
      for (const user of Object.keys(subjects)) {
        const js = jetstream(yield* as(port, user))
        for (const [other, subject] of Object.entries(subjects)) {
          assert.strictEqual(yield* refused(() => js.publish(subject, "{}")), other !== user, `${user} on ${subject}`)
        }
      }
      const nc = yield* as(port, "transfers")
      const said = yield* Effect.promise(async () => {
        const consumer = await jetstream(nc).consumers.get("TRANSFERS", "transfers")
        const message = await consumer.next({ expires: 15_000 })
        await message!.ackAck()
        return message!.string()
      })
      assert.strictEqual(said, "told")
      const request = (subject: string) => () => nc.request(subject, "", { timeout: 15_000 })
      assert.isTrue(yield* refused(request("$JS.API.CONSUMER.MSG.NEXT.EVENTS.mail-events")))
      assert.isTrue(yield* refused(request("$JS.API.CONSUMER.CREATE.TRANSFERS.mine")))
      assert.isTrue(yield* refused(request("intake.v1.identity-directory.person")))
      assert.isTrue(
        yield* refused(async () => {
          for await (const _ of nc.subscribe("_INBOX.>")) return
        }),
      )
    }).pipe(Effect.scoped))
})
