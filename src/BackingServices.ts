/** The database and the broker: the configured servers, else embedded servers in the home. */
import { Effect, Redacted } from "effect"
import type { AppConfig } from "./AppConfig.ts"
import * as EmbeddedNats from "./embedded/EmbeddedNats.ts"
import * as EmbeddedPostgres from "./embedded/EmbeddedPostgres.ts"
import * as Home from "./embedded/Home.ts"
import { kept } from "./embedded/Supervisor.ts"

export interface BackingServices {
  /** The home directory, locked by this process. */
  readonly home: string
  readonly database: {
    readonly url: Redacted.Redacted
    /** For the role that owns the tables; null where this process has only the role of `url`. */
    readonly ownerUrl: Redacted.Redacted | null
    readonly embedded: boolean
  }
  readonly natsUrl: Redacted.Redacted
}

/** Explicit ports only: default ports are well-known, and so never destinations anyway. */
const portsIn = (urls: Redacted.Redacted) =>
  Redacted.value(urls).split(",").map((url) => Number(URL.parse(url.trim())?.port || 0))

/** Ports of these servers; URLs that users supply may never lead there. */
export const portsOf = (backing: BackingServices): ReadonlyArray<number> =>
  [backing.database.url, backing.natsUrl].flatMap(portsIn).filter((port) => port > 0)

const on = (port: number | undefined) => port === undefined ? {} : { port }

/**
 * Locks the home and starts the missing servers; all of them stop when the scope closes. `underway`: work that is
 * done while the embedded PostgreSQL starts.
 */
export const open = Effect.fn("BackingServices.open")(function* (
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
  return { home, database, natsUrl } satisfies BackingServices
})
