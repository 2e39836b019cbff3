/**
 * A cluster of three nats-servers on loopback ports, each of which may be killed and started again, cut off from the other
 * two, and lose its files. Clients and servers speak TLS to each other; clients have a credentials file.
 */
import { Effect, Exit, Redacted, Scope } from "effect"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ChildProcess from "../../../src/embedded/ChildProcess.ts"
import { freePort } from "../../../src/embedded/FreePorts.ts"
import { prepare } from "../../../src/embedded/Home.ts"
import { natsBinary } from "../../../src/embedded/NatsBinary.ts"
import { makeAuthority } from "../../services/platform/Outbound/Certificates.ts"
import type { BrokerAccess } from "../../support/BrokerAccess.ts"
import { makeOperator } from "../../support/NatsOperator.ts"
import { home as emptyHome } from "../../support/Processes.ts"
import { relay, type TcpRelay } from "../../support/TcpRelay.ts"

export interface ClusterMember {
  readonly name: string
  readonly access: BrokerAccess
  readonly start: Effect.Effect<void>
  /** SIGKILL, and wait for its end. */
  readonly kill: Effect.Effect<void>
  /** Neither of the other two reaches it, and it reaches neither; clients go on reaching it. */
  readonly isolate: Effect.Effect<void>
  readonly rejoin: Effect.Effect<void>
  /** Overwrites half of each block of messages; between `kill` and `wipe`. Returns how many blocks there were. */
  readonly damage: Effect.Effect<number>
  /** Deletes all its data; between `kill` and `start`. */
  readonly wipe: Effect.Effect<void>
}

const names = ["one", "two", "three"] as const

/** A server of this configuration, which runs until it is killed or the scope closes. */
const server = Effect.fnUntraced(function* (file: string, folder: string, conf: string) {
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
  return { start, kill }
})

const blocksOf = (store: string) =>
  readdirSync(store, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".blk")).map((name) =>
    join(store, name)
  )

const filesOf = (store: string) => ({
  damage: Effect.sync(() => {
    const blocks = blocksOf(store)
    for (const block of blocks) {
      const bytes = readFileSync(block)
      writeFileSync(block, bytes.fill(0x5a, bytes.length >> 1))
    }
    return blocks.length
  }),
  wipe: Effect.sync(() => {
    rmSync(store, { recursive: true, force: true })
    mkdirSync(store)
  }),
})

/** What each server reaches the others by: `links[i][j]` leads from i to j. */
const linksBetween = (routes: ReadonlyArray<number>) =>
  Effect.forEach(
    routes,
    (_, i) =>
      Effect.forEach(routes, (port, j) => i === j ? Effect.succeed(null) : relay(new URL(`tcp://127.0.0.1:${port}`))),
  )

/** All three, started. `access` names all of them, and `caFile` has the authority of their certificates. */
export const threeBrokers = Effect.gen(function* () {
  const home = yield* prepare(yield* emptyHome)
  const file = yield* natsBinary(home)
  const operator = makeOperator()
  const authority = makeAuthority("Brokers")
  const issued = authority.issue("localhost")
  const kept = (name: string, text: string) => {
    writeFileSync(join(home, name), text)
    return join(home, name)
  }
  const caFile = kept("ca.pem", authority.certificate)
  const own = `cert_file: "${kept("cert.pem", issued.cert)}", key_file: "${kept("key.pem", issued.key)}", timeout: 15`
  const ports = yield* Effect.forEach(names, () => Effect.all({ client: freePort(), route: freePort() }))
  const links = yield* linksBetween(ports.map(({ route }) => route))
  const accessOf = (...of: ReadonlyArray<number>): BrokerAccess => ({
    url: Redacted.make(of.map((i) => `tls://localhost:${ports[i]!.client}`).join(",")),
    creds: operator.credentials(),
    ca: authority.certificate,
  })
  const members = yield* Effect.forEach(names, (name, i) =>
    Effect.gen(function* () {
      const { client, route } = ports[i]!
      const folder = join(home, name)
      const store = join(folder, "store")
      mkdirSync(store, { recursive: true })
      const routes = links[i]!.flatMap((link) => link === null ? [] : [`nats-route://localhost:${link.port}`])
      const conf = join(folder, "nats.conf")
      writeFileSync(
        conf,
        [
          `server_name: "${name}"`,
          `listen: "127.0.0.1:${client}"`,
          `jetstream { store_dir: ${JSON.stringify(store)} }`,
          `tls { ${own} }`,
          `cluster {`,
          `  name: "brokers", listen: "127.0.0.1:${route}", routes: [${routes.join(", ")}]`,
          // The servers tell each other of an address that leads nowhere: they know each other by the links alone.
          `  advertise: "127.0.0.1:9", tls { ${own}, ca_file: "${caFile}", verify: true }`,
          `}`,
          ...operator.configuration,
        ].join("\n"),
      )
      const process = yield* server(file, folder, conf)
      yield* process.start
      const around = (act: (link: TcpRelay) => void) =>
        Effect.sync(() =>
          links.forEach((row, from) =>
            row.forEach((link, to) => link !== null && (from === i || to === i) && act(link))
          )
        )
      return {
        name,
        access: accessOf(i),
        ...process,
        ...filesOf(store),
        isolate: around((link) => link.refuse()),
        rejoin: around((link) => link.mend()),
      } satisfies ClusterMember
    }))
  return { members, access: accessOf(0, 1, 2), caFile }
})
