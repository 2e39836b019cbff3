/** The program as users start it, on a database and a broker of the bench's, with receivers allowed on loopback. */
import { Effect, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import process from "node:process"
import { Database } from "../../services/platform/database/Database.ts"
import * as Child from "./Child.ts"
import type { Fixture, Servers } from "./Servers.ts"

export const keysFileOf = (servers: Servers): string => join(servers.home, "keys.json")

export const environment = (servers: Servers, fixture: Fixture, env: Readonly<Record<string, string>> = {}) => ({
  BAILIWICK_HOME: join(servers.home, `program-${randomUUID()}`),
  BAILIWICK_KEYS_FILE: keysFileOf(servers),
  DATABASE_URL: fixture.databaseUrl,
  DATABASE_OWNER_URL: fixture.ownerUrl,
  NATS_URL: fixture.natsUrl,
  HOST: "127.0.0.1",
  PORT: "0",
  DEMO: "false",
  WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8",
  LOG_FORMAT: "json",
  LOG_LEVEL: "warn",
  // Limits that are never reached; requests are counted all the same.
  MAIL_READ_RATE: "10000000",
  MAIL_WRITE_RATE: "10000000",
  ...env,
})

const profiled = [process.execPath, ...Child.denoRun("src/main.ts"), "--cpu-prof", "--cpu-prof-dir=bench/results/tmp"]

/**
 * Starts the program; it may be working before it says that it is ready. With `profile` it leaves a CPU profile when it
 * ends, on this runtime; `command` is its runtime where that is not this one.
 */
export const start = (
  servers: Servers,
  fixture: Fixture,
  env?: Readonly<Record<string, string>>,
  profile = false,
  command: ReadonlyArray<string> | undefined = profile ? profiled : undefined,
) =>
  Child.start({
    module: "src/main.ts",
    env: environment(servers, fixture, env),
    ...(command === undefined ? {} : { command }),
  })

/** Waits until it is ready and returns its address ("" without the role `api`). */
export const ready = (program: Child.Child) =>
  Effect.map(program.line(/^bailiwick ready/), (line) => /http:\S+/.exec(line)?.[0] ?? "")

/** The pools of a program, for measurements of services without one. `patience` times their limits of time. */
export const databaseOf = (fixture: Fixture, patience = 1) =>
  Database.layer({
    patience,
    url: Redacted.make(fixture.databaseUrl),
    ownerUrl: Redacted.make(fixture.ownerUrl),
    maxConnections: 2,
  })
