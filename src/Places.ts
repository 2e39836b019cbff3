/** Where the database and the broker are: what the configuration names, else servers of our own in the home. */
import { Effect, Redacted } from "effect"
import { join } from "node:path"
import type { AppConfig } from "./AppConfig.ts"
import type { Ended } from "./embedded/Children.ts"
import { EmbeddedError } from "./embedded/EmbeddedError.ts"
import * as EmbeddedNats from "./embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "./embedded/EmbeddedPostgres.ts"
import * as Home from "./embedded/Home.ts"

export interface Places {
  /** The home, which this process holds. */
  readonly home: string
  readonly database: {
    readonly url: Redacted.Redacted
    readonly ownerUrl: Redacted.Redacted
    readonly embedded: boolean
  }
  readonly natsUrl: Redacted.Redacted
}

export interface Opened extends Places {
  /** Fails when a server of our own has ended that nobody asked to: nothing here starts it again. */
  readonly lost: Effect.Effect<never, EmbeddedError>
}

/** Those that a URL leaves out are well-known, and no destination in any case. */
const portsIn = (urls: Redacted.Redacted) =>
  Redacted.value(urls).split(",").map((url) => Number(URL.parse(url.trim())?.port || 0))

/** Ports of these servers: never a destination of what users send us. */
export const portsOf = (places: Places): ReadonlyArray<number> =>
  [places.database.url, places.natsUrl].flatMap(portsIn).filter((port) => port > 0)

/** Who stops all processes at once stops the servers as well: that is no loss. */
const lossOf = (what: string, log: string, exited: Effect.Effect<Ended>) =>
  Effect.flatMap(exited, ({ code, signal }) =>
    Effect.fail(
      new EmbeddedError({ message: `${what} ended with ${signal ?? code}, ${log} may say why: start this again` }),
    ).pipe(Effect.delay("1 second")))

/** Takes the home and starts what is missing; all of it stops when the scope closes. */
export const open = Effect.fn("Places.open")(function* (config: AppConfig) {
  const home = yield* Home.open(config.home)
  const [database, broker] = yield* Effect.all([
    config.databaseUrl === null
      ? Effect.map(
        EmbeddedPostgres.start({ home }),
        ({ appUrl, exited, ownerUrl }) => ({
          ...{ url: appUrl, ownerUrl, embedded: true },
          lost: lossOf("the embedded PostgreSQL", join(home, "postgres.log"), exited),
        }),
      )
      : Effect.succeed({
        ...{ url: config.databaseUrl, ownerUrl: config.databaseOwnerUrl ?? config.databaseUrl, embedded: false },
        lost: Effect.never,
      }),
    config.natsUrl === null
      ? Effect.map(
        EmbeddedNats.start({ home }),
        ({ exited, url }) => ({ url, lost: lossOf("the embedded nats-server", join(home, "nats.log"), exited) }),
      )
      : Effect.succeed({ url: config.natsUrl, lost: Effect.never }),
  ], { concurrency: 2 })
  const { lost, ...addresses } = database
  return {
    home,
    database: addresses,
    natsUrl: broker.url,
    lost: Effect.raceFirst(lost, broker.lost),
  } satisfies Opened
})
