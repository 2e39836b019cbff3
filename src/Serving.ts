/** Runs the program on running servers: builds its layers, prints the ready line, and serves. */
import { Context, Effect, Layer, Option, Redacted, Schedule } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { awaited } from "../services/platform/database/Database/Awaited.ts"
import { Readiness } from "../services/platform/observability/Readiness.ts"
import { addresses, app, prepare, publicUrlOf } from "./App.ts"
import type { AppConfig } from "./AppConfig.ts"
import { demoFile } from "./embedded/DemoDirectory.ts"
import * as Home from "./embedded/Home.ts"
import { devConsolePath } from "./http/dev/DevConsole.ts"
import { DevKey } from "./http/dev/DevKey.ts"
import { Server } from "./http/Server.ts"
import type * as BackingServices from "./BackingServices.ts"
import * as Unheard from "./process/StdioErrors.ts"

/** Waits for the database and the schema without limit, for the broker some 10 s: commands work without it. */
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
  servers: BackingServices.BackingServices,
  url: string,
  devKey: Option.Option<DevKey["Service"]>,
) {
  yield* say(`bailiwick ready on ${url}`)
  yield* say(`  reference     ${url}/v1/docs`)
  yield* say(`  home          ${servers.home}`)
  if (config.demo && Option.isSome(devKey)) {
    const key = Redacted.value(devKey.value.key)
    if (config.console !== "off") yield* say(`  console       ${url}${devConsolePath}?key=${key}`)
    yield* say(`  dev mailbox   ${url}/dev/mailbox?key=${key}`)
  } else if (config.console !== "off" && config.consoleIssuers.length > 0) {
    yield* say(`  console       ${url}/console/`)
  }
  const demo = join(servers.home, demoFile)
  if (config.demo && existsSync(demo)) yield* say(`  demo accounts ${demo}`)
})

/** Serves until interrupted; `warnings` are logged (AppConfig/Warnings.ts). */
const serve = Effect.fn("serve")(function* (
  config: AppConfig,
  servers: BackingServices.BackingServices,
  warnings: ReadonlyArray<string>,
) {
  if (!servers.database.embedded) {
    yield* awaited(servers.database.url)
    if (servers.database.ownerUrl !== null) yield* awaited(servers.database.ownerUrl)
  }
  const context = yield* Layer.build(app(config, servers))
  for (const line of warnings) yield* Effect.logWarning(line)
  const server = Context.getOption(context, Server)
  const url = Option.match(server, { onNone: () => "", onSome: (s) => s.url })
  const status = yield* Effect.provideContext(ready, context)
  yield* Home.publish(servers.home, {
    pid: process.pid,
    http_url: url,
    public_url: publicUrlOf(config).origin,
    ...addresses(servers),
  })
  if (status === "degraded") yield* Effect.logWarning("the event bus does not answer yet: messages wait in the outbox")
  if (Option.isSome(server)) yield* welcome(config, servers, url, Context.getOption(context, DevKey))
  else yield* say(`bailiwick ready: ${[...config.roles].join(", ")}`)
  return yield* Option.match(server, { onNone: () => Effect.never, onSome: ({ failed }) => failed })
})

/** Prepares the program without its servers; the result then serves on them. */
export const serving = (config: AppConfig, warnings: ReadonlyArray<string>) =>
  Effect.as(prepare(config), (servers: BackingServices.BackingServices) => serve(config, servers, warnings))
