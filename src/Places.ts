/** Where the database and the broker are: what the configuration names, else servers of our own in the home. */
import { Effect, Redacted } from "effect"
import type { AppConfig } from "./AppConfig.ts"
import * as EmbeddedNats from "./embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "./embedded/EmbeddedPostgres.ts"
import * as Home from "./embedded/Home.ts"
import { kept } from "./embedded/Kept.ts"

export interface Places {
  /** The home, which this process holds. */
  readonly home: string
  readonly database: {
    readonly url: Redacted.Redacted
    /** Of the role that owns the tables; null where this process has none but that of `url`. */
    readonly ownerUrl: Redacted.Redacted | null
    readonly embedded: boolean
  }
  readonly natsUrl: Redacted.Redacted
}

/** Those that a URL leaves out are well-known, and no destination in any case. */
const portsIn = (urls: Redacted.Redacted) =>
  Redacted.value(urls).split(",").map((url) => Number(URL.parse(url.trim())?.port || 0))

/** Ports of these servers: never a destination of what users send us. */
export const portsOf = (places: Places): ReadonlyArray<number> =>
  [places.database.url, places.natsUrl].flatMap(portsIn).filter((port) => port > 0)

const on = (port: number | undefined) => port === undefined ? {} : { port }

/**
 * Takes the home and starts what is missing; all of it stops when the scope closes. `underway` is run as soon as there is
 * nothing to do here but to wait for a server of our own.
 */
export const open = Effect.fn("Places.open")(function* (
  config: AppConfig,
  underway: Effect.Effect<unknown> = Effect.void,
) {
  const home = yield* Home.open(config.home)
  const [database, natsUrl] = yield* Effect.all([
    config.databaseUrl === null
      ? Effect.map(
        kept("the embedded PostgreSQL", (port) => EmbeddedPostgres.start({ home, underway, ...on(port) })),
        ({ appUrl, ownerUrl }) => ({ url: appUrl, ownerUrl, embedded: true }),
      )
      : Effect.succeed({
        url: config.databaseUrl,
        ownerUrl: config.databaseOwnerUrl,
        embedded: false,
      }),
    config.natsUrl === null
      ? Effect.map(
        kept("the embedded nats-server", (port) => EmbeddedNats.start({ home, ...on(port) })),
        ({ url }) => url,
      )
      : Effect.succeed(config.natsUrl),
  ], { concurrency: 2 })
  return { home, database, natsUrl } satisfies Places
})
