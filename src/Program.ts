/** One run of the program: servers, layers, the line that says it is ready, and a clean end. */
import { Context, Effect, Layer, Option, Redacted, Schedule } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { awaited } from "../services/platform/Database/Awaited.ts"
import { Readiness } from "../services/platform/Readiness.ts"
import { addresses, app, publicUrlOf } from "./App.ts"
import { type AppConfig, load } from "./AppConfig.ts"
import { warningsOf } from "./AppConfig/Warnings.ts"
import { demoFile } from "./embedded/DemoDirectory.ts"
import * as Home from "./embedded/Home.ts"
import { freePort, mustBeFree } from "./embedded/Ports.ts"
import { DevKey } from "./http/DevKey.ts"
import { Server } from "./http/Server.ts"
import * as Places from "./Places.ts"
import { telemetry } from "./Telemetry.ts"
import * as Unheard from "./Unheard.ts"

/** Ready once the database and the schema are, whenever that is; for the broker it waits a moment: commands do without it. */
const ready = Effect.gen(function* () {
  const readiness = yield* Readiness
  const looked = readiness.look.pipe(
    Effect.flatMap((look) => look.status === "ready" ? Effect.succeed(look.status) : Effect.fail(look.status)),
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 200 }),
    Effect.catch((status) => status === "degraded" ? Effect.succeed(status) : Effect.fail(status)),
  )
  return yield* looked.pipe(
    Effect.tapError(() => Effect.logWarning("the database does not answer, or lacks a table: not ready yet")),
    Effect.eventually,
  )
})

const say = (line: string) => Effect.sync(() => Unheard.say(process.stdout, `${line}\n`))

const welcome = Effect.fnUntraced(function* (
  config: AppConfig,
  places: Places.Places,
  url: string,
  devKey: Option.Option<DevKey["Service"]>,
) {
  yield* say(`bailiwick ready on ${url}`)
  yield* say(`  reference     ${url}/v1/docs`)
  yield* say(`  home          ${places.home}`)
  if (config.demo && Option.isSome(devKey)) {
    yield* say(`  dev mailbox   ${url}/dev/mailbox?key=${Redacted.value(devKey.value.key)}`)
  }
  const demo = join(places.home, demoFile)
  if (config.demo && existsSync(demo)) yield* say(`  demo accounts ${demo}`)
})

/** Found before anything is made in the home; a home that another process holds says so by itself. */
const portsAreFree = Effect.fnUntraced(function* (config: AppConfig) {
  if (Option.isSome(yield* Home.holder(config.home))) return
  if (config.roles.has("api")) yield* mustBeFree("PORT", config.host, config.port)
  if (config.cluster === "on" && config.roles.has("actors")) {
    yield* mustBeFree("CLUSTER_PORT", config.clusterHost, config.clusterPort)
  }
  if (config.metricsPort !== null) yield* mustBeFree("METRICS_PORT", config.host, config.metricsPort)
})

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
    const places = yield* Places.open(config)
    if (!places.database.embedded) {
      yield* awaited(places.database.url)
      if (places.database.ownerUrl !== null) yield* awaited(places.database.ownerUrl)
    }
    const context = yield* Layer.build(app(config, places))
    for (const line of warningsOf(asked, Object.keys(process.env))) yield* Effect.logWarning(line)
    const server = Context.getOption(context, Server)
    const url = Option.match(server, { onNone: () => "", onSome: (s) => s.url })
    const status = yield* Effect.provideContext(ready, context)
    yield* Home.publish(places.home, {
      pid: process.pid,
      http_url: url,
      public_url: publicUrlOf(config).origin,
      ...addresses(places),
    })
    if (status === "degraded") yield* Effect.logWarning("the event bus does not answer yet: what is said to it waits")
    if (Option.isSome(server)) yield* welcome(config, places, url, Context.getOption(context, DevKey))
    else yield* say(`bailiwick ready: ${[...config.roles].join(", ")}`)
    return yield* Option.match(server, { onNone: () => Effect.never, onSome: ({ failed }) => failed })
  }).pipe(Effect.scoped, Effect.provide(telemetry(config)))
})
