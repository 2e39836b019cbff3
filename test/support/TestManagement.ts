/**
 * The identity API served as the program serves it: the whole app in this process (`src/App.ts`, DEMO, roles `api` and
 * `mail`), over a database, a broker account and a home of the test file's own. Its log is kept, down to `Trace`.
 *
 * What it gives besides are the services below it, so that a test can put the directory's lines in (`TestIdentity`) and
 * look at the rows; the home's issuer speaks for every issuer (`TestTokens`).
 */
import { ConfigProvider, Context, Effect, Layer, Logger, References } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { app } from "../../src/App.ts"
import { load } from "../../src/AppConfig.ts"
import { EmbeddedIssuer } from "../../src/embedded/EmbeddedIssuer.ts"
import { issuer } from "./TestIdentity.ts"
import { TestBus } from "./TestBus.ts"
import { TestDatabase } from "./TestDatabase.ts"

const publicUrl = "http://127.0.0.1:8080"

/** A service that may write people. */
export const writer = { issuer, clientId: "hr" }

/** What the program logged, a line of JSON each. */
export class Logged extends Context.Service<Logged, { readonly lines: Array<string> }>()(
  "bailiwick/test/support/TestManagement/Logged",
) {
  static readonly layer = Layer.sync(Logged, () => Logged.of({ lines: [] }))
}

const logs = Layer.unwrap(Effect.map(Logged, ({ lines }) =>
  Layer.mergeAll(
    Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))]),
    Layer.succeed(References.MinimumLogLevel, "Trace"),
    Layer.succeed(References.TracerEnabled, false),
  )))

const home = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-management-"))),
  (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true })),
)

const settings = (more: Readonly<Record<string, string>>) => ({
  DEMO: "true",
  PORT: "0",
  PUBLIC_URL: publicUrl,
  ROLES: "api,mail",
  MANAGEMENT_READ_RATE: "0",
  MANAGEMENT_WRITE_RATE: "0",
  DIRECTORY_WRITER_CLIENTS: `${writer.issuer} ${writer.clientId}`,
  ...more,
})

const served = (more: Readonly<Record<string, string>>) =>
  Layer.unwrap(Effect.gen(function* () {
    const { ownerUrl, url } = yield* TestDatabase
    const bus = yield* TestBus.make
    const folder = yield* home
    const provider = ConfigProvider.fromUnknown(settings({ ...more, BAILIWICK_HOME: folder }))
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    const places = { home: folder, database: { url, ownerUrl, embedded: false }, natsUrl: bus.url }
    // One after the other: the first makes the key of the home.
    return app(config, places).pipe(
      Layer.provideMerge(EmbeddedIssuer.layer({ home: folder, issuer: new URL("/dev/issuer", publicUrl).href })),
    )
  })).pipe(Layer.provide(logs))

/** The app; `more` are variables of its environment (INTERFACE). No limit on requests unless it is named. */
export const management = (more: Readonly<Record<string, string>> = {}) =>
  served(more).pipe(Layer.provideMerge(Layer.merge(TestDatabase.layer, Logged.layer)), Layer.orDie)
