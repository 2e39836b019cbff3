/**
 * Finds the instance that a command works on: variables name its servers, else `runtime.json` of the instance that runs
 * with this `BAILIWICK_HOME`.
 */
import { Effect, Layer, Option, Redacted, Result } from "effect"
import { Bus, BusError } from "../../services/platform/messaging/Bus.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { direct } from "../../services/platform/database/Database/Awaited.ts"
import { DatabaseClock } from "../../services/platform/database/DatabaseClock.ts"
import { Vault } from "../../services/platform/security/Vault.ts"
import * as AppConfig from "../AppConfig.ts"
import * as Home from "../embedded/Home.ts"
import { CliFault } from "./CliFault.ts"
import { addressOf } from "../ServerAddress.ts"
import { reasonOf } from "./Reason.ts"
import { startCommand } from "../../services/platform/CommandSpelling.ts"

const connections = 4

/** The configuration, and the `runtime.json` of the running instance. */
export const instance = Effect.gen(function* () {
  const config = yield* AppConfig.load
  return { config, runtime: yield* Home.running(config.home) }
})

export type Instance = Effect.Success<typeof instance>

/** The key ring of the instance. */
export const vault = Layer.unwrap(Effect.map(
  instance,
  ({ config: { keys, keysFile } }) => Vault.layer({ file: keysFile ?? "", ...(keys === null ? {} : { keys }) }),
))

const none = ({ config }: Instance, variable: string) =>
  new CliFault({
    message: `no instance runs with BAILIWICK_HOME=${config.home}: type "${startCommand}" in another terminal, ` +
      `or set BAILIWICK_HOME to a running one's, or ${variable}`,
  })

interface DatabaseUrls {
  readonly url: Redacted.Redacted
  /** Null: the role of `url` is the only one. */
  readonly ownerUrl: Redacted.Redacted | null
}

/** The database's URLs: for the program's role and for the tables' owner. */
export const databaseUrls = (found: Instance): Effect.Effect<DatabaseUrls, CliFault> => {
  const { config: { databaseOwnerUrl, databaseUrl }, runtime } = found
  if (databaseUrl !== null) return Effect.succeed({ url: databaseUrl, ownerUrl: databaseOwnerUrl })
  return Option.match(runtime, {
    onNone: () => Effect.fail(none(found, "DATABASE_URL")),
    onSome: ({ database_owner_url, database_url }) =>
      Effect.succeed({
        url: Redacted.make(database_url),
        ownerUrl: database_owner_url === null ? null : Redacted.make(database_owner_url),
      }),
  })
}

/** Connection pools for these URLs, on the database's clock. */
export const databaseAt = (urls: DatabaseUrls) =>
  DatabaseClock.layer().pipe(
    Layer.provideMerge(Database.layer({ ...urls, maxConnections: connections })),
    Layer.provide(Layer.effectDiscard(
      Effect.forEach([urls.url, ...(urls.ownerUrl === null ? [] : [urls.ownerUrl])], direct, { concurrency: 2 }),
    )),
    Layer.catch((error) =>
      Layer.effectContext(Effect.fail(
        new CliFault({ message: `cannot use the database at ${addressOf(urls.url)}: ${reasonOf(error)}` }),
      ))
    ),
  )

export const database = Layer.unwrap(Effect.map(Effect.flatMap(instance, databaseUrls), databaseAt))

/** The broker's URL, where a variable or a running instance names one. */
export const natsUrl = ({ config, runtime }: Instance): Option.Option<Redacted.Redacted> =>
  config.natsUrl !== null ? Option.some(config.natsUrl) : Option.map(runtime, ({ nats_url }) => Redacted.make(nats_url))

/** The broker's URL and credentials. */
export const configOf = ({ config }: Instance, url: Redacted.Redacted) => ({
  url,
  ...(config.natsCreds === null ? {} : { credsFile: config.natsCreds }),
  ...(config.natsReplicas === null ? {} : { replicas: config.natsReplicas }),
})

/** The broker's URL and credentials; fails where no broker is known. */
export const brokerOf = (found: Instance) =>
  Option.match(natsUrl(found), {
    onNone: () => Effect.fail(none(found, "NATS_URL")),
    onSome: (url) => Effect.succeed(configOf(found, url)),
  })

/** The broker, connected and with its streams in place. */
export const bus = Layer.unwrap(Effect.gen(function* () {
  const broker = yield* brokerOf(yield* instance)
  const reached = Layer.effectDiscard(Effect.gen(function* () {
    yield* (yield* Bus).heal
  })).pipe(
    Layer.catch((error) =>
      Layer.effectDiscard(Effect.fail(
        new CliFault({ message: `cannot use the broker at ${addressOf(broker.url)}: ${error.detail}` }),
      ))
    ),
  )
  return Layer.provideMerge(reached, Bus.layer(broker))
}))

const noBroker = new BusError({ reason: "unavailable", detail: "NATS_URL is not set" })

/** For commands that only send wake-up signals: a lost signal does no harm, since every worker polls as well. */
const unconnected = Layer.succeed(
  Bus,
  Bus.of({
    publish: () => Effect.fail(noBroker),
    publishAll: (messages) => Effect.succeed(messages.map(() => Result.fail(noBroker))),
    consume: () => Effect.void,
    publishCore: () => Effect.void,
    subscribeCore: () => Effect.void,
    status: Effect.succeed("fail"),
    fault: Effect.succeed(noBroker.detail),
    connected: Effect.succeed(false),
    epoch: Effect.succeed(0),
    serverVersion: Effect.succeed(null),
    mark: () => Effect.fail(noBroker),
    report: () => Effect.fail(noBroker),
    history: () => Effect.fail(noBroker),
    missing: () => Effect.fail(noBroker),
    passing: () => Effect.fail(noBroker),
    newest: () => Effect.fail(noBroker),
    rewind: () => Effect.fail(noBroker),
    unanswered: () => Effect.fail(noBroker),
    subscribers: () => Effect.fail(noBroker),
    heal: Effect.fail(noBroker),
  }),
)

/**
 * The broker where one is known, for commands that do without it: work whose wake-up signal is lost starts with the
 * next poll.
 */
export const busIfKnown = Layer.unwrap(
  Effect.map(
    instance,
    (found) =>
      Option.match(natsUrl(found), { onNone: () => unconnected, onSome: (url) => Bus.layer(configOf(found, url)) }),
  ),
)
