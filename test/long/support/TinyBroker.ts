/** A broker with almost no disk, for one test. */
import { Effect, Redacted, type Scope } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Children from "../../../src/embedded/ChildProcess.ts"
import type { EmbeddedError } from "../../../src/embedded/EmbeddedError.ts"
import { prepare } from "../../../src/embedded/Home.ts"
import { natsBinary } from "../../../src/embedded/NatsBinary.ts"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import { home as emptyHome } from "../../support/Processes.ts"

/** A nats-server whose streams may hold `maxBytes` together, and its address. */
export const tinyBroker = (maxBytes: number): Effect.Effect<Redacted.Redacted, EmbeddedError, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* prepare(yield* emptyHome)
    const file = yield* natsBinary(home)
    const port = yield* freePort()
    const token = crypto.randomUUID()
    const store = join(home, "store")
    mkdirSync(store, { recursive: true })
    const conf = join(home, "tiny.conf")
    writeFileSync(
      conf,
      [
        `listen: "127.0.0.1:${port}"`,
        `jetstream { store_dir: ${JSON.stringify(store)}, max_file_store: ${maxBytes} }`,
        `authorization { token: "${token}" }`,
      ].join("\n"),
    )
    yield* Children.serve({ file, args: ["-c", conf], cwd: home }, join(home, "tiny.log"), [["SIGKILL", "5 seconds"]])
    return Redacted.make(`nats://${token}@127.0.0.1:${port}`)
  })
