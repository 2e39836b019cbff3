/** A cluster of three nats-servers on loopback ports, each of which may be killed and started again. */
import { Effect, Exit, Redacted, Scope } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ChildProcess from "../../../src/embedded/ChildProcess.ts"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import { prepare } from "../../../src/embedded/Home.ts"
import { natsBinary } from "../../../src/embedded/NatsBinary.ts"
import { home as emptyHome } from "../../support/Processes.ts"

export interface ClusterMember {
  readonly name: string
  readonly url: Redacted.Redacted
  readonly start: Effect.Effect<void>
  /** SIGKILL, and wait for its end. */
  readonly kill: Effect.Effect<void>
}

const names = ["one", "two", "three"] as const

/** All three, started. `url` names all of them. */
export const threeBrokers = Effect.gen(function* () {
  const home = yield* prepare(yield* emptyHome)
  const file = yield* natsBinary(home)
  const token = crypto.randomUUID()
  const ports = yield* Effect.forEach(names, () => Effect.all({ client: freePort(), route: freePort() }))
  const routes = ports.map(({ route }) => `nats-route://127.0.0.1:${route}`).join(", ")
  const members: Array<ClusterMember> = []
  for (const [i, name] of names.entries()) {
    const { client, route } = ports[i]!
    const folder = join(home, name)
    const store = join(folder, "store")
    mkdirSync(store, { recursive: true })
    const conf = join(folder, "nats.conf")
    writeFileSync(
      conf,
      [
        `server_name: "${name}"`,
        `listen: "127.0.0.1:${client}"`,
        `jetstream { store_dir: ${JSON.stringify(store)} }`,
        `cluster { name: "brokers", listen: "127.0.0.1:${route}", routes: [${routes}] }`,
        `authorization { token: "${token}", timeout: 15 }`,
      ].join("\n"),
    )
    let running: { readonly scope: Scope.Closeable } | null = null
    const kill = Effect.suspend(() => {
      if (running === null) return Effect.void
      const { scope } = running
      running = null
      return Scope.close(scope, Exit.void)
    })
    yield* Effect.addFinalizer(() => kill)
    const start = Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* ChildProcess.serve({ file, args: ["-c", conf], cwd: folder }, join(folder, "nats.log"), [
        ["SIGKILL", "5 seconds"],
      ]).pipe(Scope.provide(scope), Effect.orDie)
      running = { scope }
    })
    yield* start
    members.push({
      name,
      start,
      kill,
      url: Redacted.make(`nats://${token}@127.0.0.1:${client}`),
    })
  }
  return { members, url: members.map(({ url }) => Redacted.value(url)).join(",") }
})
