/**
 * Which instance a command is about: explicit variables win, else the one that runs with this `BAILIWICK_HOME` and says
 * in `runtime.json` where its servers are.
 */
import { Effect, Layer, Option, Redacted, Result } from "effect"
import { Bus, BusError } from "../../services/platform/messaging/Bus.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { DatabaseClock } from "../../services/platform/database/DatabaseClock.ts"
import * as AppConfig from "../AppConfig.ts"
import * as Home from "../embedded/Home.ts"
import { CliFault } from "./CliFault.ts"
import { reasonOf } from "./Reason.ts"

const connections = 4

/** The configuration, and what the running instance published. */
export const instance = Effect.gen(function* () {
  const config = yield* AppConfig.load
  return { config, runtime: yield* Home.running(config.home) }
})

export type Instance = Effect.Success<typeof instance>

const none = ({ config }: Instance, variable: string) =>
  new CliFault({
    message: `no instance runs with BAILIWICK_HOME=${config.home}: type "deno task start" in another terminal, ` +
      `or set BAILIWICK_HOME to a running one's, or ${variable}`,
  })

const parts = (url: Redacted.Redacted) => URL.parse(Redacted.value(url).split(",")[0] ?? "")

/** Host, port and database of a URL: what may be shown of it. */
export const placeOf = (url: Redacted.Redacted): string => {
  const parsed = parts(url)
  return parsed === null ? "an address that is no URL" : `${parsed.host}${parsed.pathname.replace(/^\/$/, "")}`
}

interface DatabaseUrls {
  readonly url: Redacted.Redacted
  /** Null: the role of `url` is the only one. */
  readonly ownerUrl: Redacted.Redacted | null
}

/** Where the database is, for the program's role and for the tables' owner. */
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

/** The pools over these addresses, on the database's clock. */
export const databaseAt = (urls: DatabaseUrls) =>
  DatabaseClock.layer().pipe(
    Layer.provideMerge(Database.layer({ ...urls, maxConnections: connections })),
    Layer.catch((error) =>
      Layer.effectContext(Effect.fail(
        new CliFault({ message: `cannot use the database at ${placeOf(urls.url)}: ${reasonOf(error)}` }),
      ))
    ),
  )

export const database = Layer.unwrap(Effect.map(Effect.flatMap(instance, databaseUrls), databaseAt))

/** Where the broker is, if anything says so. */
export const natsUrl = ({ config, runtime }: Instance): Option.Option<Redacted.Redacted> =>
  config.natsUrl !== null ? Option.some(config.natsUrl) : Option.map(runtime, ({ nats_url }) => Redacted.make(nats_url))

/** How to reach the broker. */
export const configOf = ({ config }: Instance, url: Redacted.Redacted) => ({
  url,
  ...(config.natsCreds === null ? {} : { credsFile: config.natsCreds }),
})

/** How to reach the broker; fails where nothing says so. */
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
        new CliFault({ message: `cannot use the broker at ${placeOf(broker.url)}: ${error.detail}` }),
      ))
    ),
  )
  return Layer.provideMerge(reached, Bus.layer(broker))
}))

const nowhere = new BusError({ reason: "unavailable", detail: "NATS_URL is not set" })

/** For who only rings bells: those are never the truth, and whoever waits looks by itself. */
const unconnected = Layer.succeed(
  Bus,
  Bus.of({
    publish: () => Effect.fail(nowhere),
    publishAll: (messages) => Effect.succeed(messages.map(() => Result.fail(nowhere))),
    consume: () => Effect.void,
    publishCore: () => Effect.void,
    subscribeCore: () => Effect.void,
    status: Effect.succeed("fail"),
    fault: Effect.succeed(nowhere.detail),
    connected: Effect.succeed(false),
    epoch: Effect.succeed(0),
    serverVersion: Effect.succeed(null),
    mark: () => Effect.fail(nowhere),
    history: () => Effect.fail(nowhere),
    missing: () => Effect.fail(nowhere),
    rewind: () => Effect.fail(nowhere),
    unanswered: () => Effect.fail(nowhere),
    subscribers: () => Effect.fail(nowhere),
    heal: Effect.fail(nowhere),
  }),
)

/** The broker where one is known, for what does not need it: a bell that is not heard is looked for a little later. */
export const busIfKnown = Layer.unwrap(
  Effect.map(
    instance,
    (found) =>
      Option.match(natsUrl(found), { onNone: () => unconnected, onSome: (url) => Bus.layer(configOf(found, url)) }),
  ),
)
