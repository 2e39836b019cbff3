/** One run of the program: its configuration, its servers and its roles, until a clean end. */
import { Deferred, Effect, Option } from "effect"
import process from "node:process"
import { type AppConfig, load } from "./AppConfig.ts"
import { warningsOf } from "./AppConfig/Warnings.ts"
import * as Home from "./embedded/Home.ts"
import { freePort, mustBeFree } from "./embedded/FreePorts.ts"
import * as BackingServices from "./BackingServices.ts"
import { telemetry } from "./Telemetry.ts"

/**
 * Checks ports before files are made in the home. Where another process holds the home, the check is skipped: opening
 * the home reports that better.
 */
const portsAreFree = Effect.fnUntraced(function* (config: AppConfig) {
  if (Option.isSome(yield* Home.holder(config.home))) return
  if (config.roles.has("api")) yield* mustBeFree("PORT", config.host, config.port)
  if (config.cluster === "on" && config.roles.has("actors")) {
    yield* mustBeFree("CLUSTER_PORT", config.clusterHost, config.clusterPort)
  }
  if (config.metricsPort !== null) yield* mustBeFree("METRICS_PORT", config.host, config.metricsPort)
})

/**
 * Loads the rest of the program while other processes make and start PostgreSQL: loading takes half a second of a core,
 * making the documents another quarter. Only the imports of this file are loaded before, and they are few
 * (test/Architecture.test.ts).
 */
const loaded = Effect.promise(() => import("./Serving.ts"))

/** Runs until interrupted. */
export const program = Effect.gen(function* () {
  const asked = yield* load
  const config = {
    ...asked,
    port: asked.port === 0 ? yield* freePort() : asked.port,
    clusterPort: asked.cluster === "on" && asked.clusterPort === 0
      ? yield* freePort(asked.clusterHost)
      : asked.clusterPort,
  }
  yield* portsAreFree(config)
  return yield* Effect.gen(function* () {
    const warnings = warningsOf(asked, Object.keys(process.env))
    const underway = yield* Deferred.make<void>()
    const began = Deferred.succeed(underway, undefined)
    const [servers, serve] = yield* Effect.all([
      Effect.ensuring(BackingServices.open(config, began), began),
      Deferred.await(underway).pipe(
        Effect.andThen(loaded),
        Effect.flatMap(({ serving }) => serving(config, warnings)),
      ),
    ], { concurrency: 2 })
    return yield* serve(servers)
  }).pipe(Effect.scoped, Effect.provide(telemetry(config)))
})
