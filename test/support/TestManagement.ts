/**
 * The identity API served as the program serves it: the whole app in this process (`src/App.ts`, DEMO, roles `api` and
 * `mail`), over this test file's own database, broker account and home. Its log is kept, down to `Trace`.
 *
 * The services below it are provided as well, so that a test can put the directory's lines in (`TestIdentity`) and read
 * rows; the home's issuer signs for every issuer (`TestTokens`).
 */
import { Cause, ConfigProvider, Context, Effect, Exit, Layer, Logger, References, Tracer } from "effect"
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

/** The program's log, a line of JSON each, and its spans' texts, each once. */
export class Logged extends Context.Service<Logged, {
  readonly lines: Array<string>
  readonly spans: Set<string>
}>()("bailiwick/test/support/TestManagement/Logged") {
  static readonly layer = Layer.sync(Logged, () => Logged.of({ lines: [], spans: new Set() }))
}

/** A span as a collector would get it: name, attributes and failure. */
class Told extends Tracer.NativeSpan {
  spans: Set<string> | null = null
  override end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.spans?.add([this.name, ...[...this.attributes].map((entry) => entry.map(String).join("="))].join(" "))
    if (Exit.isFailure(exit)) this.spans?.add(Cause.pretty(exit.cause))
    super.end(endTime, exit)
  }
}

const tracer = (spans: Set<string>) => Tracer.make({ span: (options) => Object.assign(new Told(options), { spans }) })

const logs = (traced: boolean) =>
  Layer.unwrap(Effect.map(Logged, ({ lines, spans }) =>
    Layer.mergeAll(
      Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))]),
      Layer.succeed(References.MinimumLogLevel, "Trace"),
      Layer.succeed(References.TracerEnabled, traced),
      Layer.succeed(Tracer.Tracer, tracer(spans)),
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

const served = (more: Readonly<Record<string, string>>, traced: boolean) =>
  Layer.unwrap(Effect.gen(function* () {
    const { ownerUrl, url } = yield* TestDatabase
    const bus = yield* TestBus
    const folder = yield* home
    const provider = ConfigProvider.fromUnknown(settings({ ...more, BAILIWICK_HOME: folder }))
    const config = yield* Effect.provideService(load, ConfigProvider.ConfigProvider, provider)
    const places = { home: folder, database: { url, ownerUrl, embedded: false }, natsUrl: bus.url }
    // One app after the other: the first one makes the home's key.
    return app(config, places).pipe(
      Layer.provideMerge(EmbeddedIssuer.layer({ home: folder, issuer: new URL("/dev/issuer", publicUrl).href })),
    )
  })).pipe(Layer.provide(logs(traced)))

/** A broker for each app, also where two apps share a database. */
const ground = Layer.mergeAll(TestDatabase.layer, Layer.fresh(TestBus.layer), Logged.layer)

/** The app; `more` are variables of its environment. Requests are not limited unless a limit is named. */
export const management = (more: Readonly<Record<string, string>> = {}, { traced = false } = {}) =>
  served(more, traced).pipe(Layer.provideMerge(ground), Layer.orDie)
