/** The operators' pages follow what happens, and say when their stream is cut. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { freePort } from "../../../../src/embedded/FreePorts.ts"
import { relay, type TcpRelay } from "../../../support/TcpRelay.ts"
import { deadLetter, webhook } from "../../../support/TestDeadLetters.ts"
import { Chromium, everyLook, heading, inConsole, press, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

/** The network between the browser and the program. */
class Network extends Context.Service<Network, TcpRelay>()("bailiwick/test/http/console/OperatorNetwork") {}

const behindNetwork = Layer.unwrap(Effect.gen(function* () {
  const port = yield* Effect.orDie(freePort())
  const network = yield* relay(new URL(`http://127.0.0.1:${port}`))
  return Layer.merge(
    staged({ PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${network.port}` }),
    Layer.succeed(Network, network),
  )
}))

layer(Layer.merge(behindNetwork, Chromium.layer), { excludeTestServices: true, timeout: "4 minutes" })(
  "an operator's live pages",
  (it) => {
    it.effect("show what happens without a reload, say that the stream is cut, and go on after it", () =>
      Effect.gen(function* () {
        const network = yield* Network
        const { sql } = yield* Database
        const origin = `http://127.0.0.1:${network.port}`
        const at = yield* inConsole("Oz", { origin }, "/console/operations/dead-letters")
        yield* heading(at.page, "Dead letters")
        yield* text(at.page, "No delivery was given up.")
        yield* text(at.page, "Live: this page follows what happens.")
        const hook = randomUUID()
        yield* webhook(hook, false)
        const first = yield* deadLetter(hook)
        yield* text(at.page, first)

        network.refuse()
        yield* text(at.page, "The live stream is cut.")
        const meanwhile = yield* deadLetter(hook)
        network.mend()
        yield* text(at.page, meanwhile)
        yield* text(at.page, "Live: this page follows what happens.")
        const complaints = at.complaints.filter((one) =>
          !/ERR_(EMPTY_RESPONSE|CONNECTION|INCOMPLETE|SOCKET_NOT_CONNECTED)/.test(one)
        )
        assert.strictEqual(complaints.join("\n"), "")

        yield* press(at.page, "Queues")
        yield* heading(at.page, "Queues")
        yield* text(at.page, "No delivery waits for any webhook.")
        const due = new Date(Date.now() - 120_000)
        yield* sql`
          insert into delivery_queue (delivery_id, webhook_id, account_id, event_id, cycle, attempt, due_at)
          values (${first}::uuid, ${hook}::uuid, ${hook}::uuid, gen_random_uuid(), 1, 2, ${due}::timestamptz)`
        yield* text(at.page, hook)
        yield* text(at.page, "late")
      }))

    it.effect("are sound in every look while they follow", () =>
      Effect.gen(function* () {
        const network = yield* Network
        const at = yield* inConsole("Oz", { origin: `http://127.0.0.1:${network.port}` }, "/console/operations/queues")
        yield* text(at.page, "Live: this page follows what happens.")
        yield* everyLook(at, "queues-live")
      }))
  },
)
