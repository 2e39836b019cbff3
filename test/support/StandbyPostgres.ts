/**
 * A PostgreSQL primary with a streaming standby, behind one address that moves with the primary, as a load balancer's or a
 * cluster manager's does.
 */
import { Effect, Redacted, type Scope } from "effect"
import { spawnSync } from "node:child_process"
import { appendFileSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { connect } from "../../src/cli/backup/BackupConnection.ts"
import { type Farewell, serve } from "../../src/embedded/ChildProcess.ts"
import * as EmbeddedPostgres from "../../src/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { writePrivate } from "../../src/embedded/Home.ts"
import { postgresData } from "../../src/embedded/PostgresData.ts"
import { until } from "../e2e/support/Until.ts"
import { home as emptyHome } from "./Processes.ts"
import { relay } from "./TcpRelay.ts"

export interface StandbyPostgres {
  /** Of the primary, whichever server that is. */
  readonly url: Redacted.Redacted
  readonly ownerUrl: Redacted.Redacted
  /** The standby gets nothing more. */
  readonly lag: Effect.Effect<void>
  /** Kills the primary, promotes the standby, and moves the address to it. */
  readonly failOver: Effect.Effect<void>
}

const farewell: Farewell = [["SIGINT", "4 seconds"], ["SIGQUIT", "2 seconds"], ["SIGKILL", "1 second"]]

/** One question, as the role that owns the tables. */
const ask = <Row extends object>(url: Redacted.Redacted, text: string) =>
  Effect.flatMap(connect(url), (db) => Effect.promise(() => db.rows<Row>(text))).pipe(Effect.scoped)

/** Copies a running server's files as a base backup (PostgreSQL, 25.3.3), and says where the copy finds its primary. */
const copied = Effect.fnUntraced(function* (ownerUrl: Redacted.Redacted, from: string, to: string, source: string) {
  const db = yield* connect(ownerUrl)
  const rows = <Row extends object>(text: string) => Effect.promise(() => db.rows<Row>(text))
  yield* rows("select pg_backup_start('standby', true)")
  const { status, stderr } = spawnSync("cp", ["-a", from, to], { encoding: "utf8" })
  if (status !== 0) return yield* Effect.die(new Error(stderr))
  const [label] = yield* rows<{ labelfile: string }>("select labelfile from pg_backup_stop(false)")
  rmSync(join(to, "postmaster.pid"))
  const { gid, uid } = statSync(from)
  for (const [name, text] of [["backup_label", label!.labelfile], ["standby.signal", ""]] as const) {
    writeFileSync(join(to, name), text)
    chownSync(join(to, name), uid, gid)
  }
  appendFileSync(join(to, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`)
}, Effect.scoped)

/** Started, with an empty database, once the standby follows. A synchronous one confirms every commit. */
export const standbyPostgres = (
  way: "synchronous" | "asynchronous",
): Effect.Effect<StandbyPostgres, never, Scope.Scope> =>
  Effect.gen(function* () {
    const [home, otherHome] = [yield* emptyHome, yield* emptyHome]
    const primary = yield* EmbeddedPostgres.start({ home })
    const address = new URL(Redacted.value(primary.ownerUrl))
    const { data, ownerPassword, appPassword } = yield* postgresData(home, false)
    const between = yield* relay(address)
    const network = yield* relay(address)

    const copy = join(otherHome, "postgres")
    writePrivate(join(otherHome, "postgres.json"), JSON.stringify({ data: copy, ownerPassword, appPassword }))
    const source = `host=127.0.0.1 port=${between.port} user=${address.username} password=${ownerPassword} ` +
      "application_name=standby"
    mkdirSync(otherHome, { recursive: true })
    yield* copied(primary.ownerUrl, data, copy, source)
    const { binaries, user } = yield* postgresData(otherHome, false)
    const port = yield* freePort()
    const settings = ["listen_addresses=127.0.0.1", `port=${port}`, "unix_socket_directories=", "timezone=UTC"]
    yield* serve(
      {
        file: binaries.postgres,
        args: ["-D", copy, ...settings.flatMap((one) => ["-c", one])],
        cwd: copy,
        user,
      },
      join(otherHome, "postgres.log"),
      farewell,
    )
    const follows = ask<{ sync_state: string }>(primary.ownerUrl, "select sync_state from pg_stat_replication")
    yield* until("a standby", follows, ([row]) => row !== undefined)
    if (way === "synchronous") {
      yield* ask(primary.ownerUrl, "alter system set synchronous_standby_names = 'standby'")
      yield* ask(primary.ownerUrl, "select pg_reload_conf()")
      yield* until("a synchronous standby", follows, ([row]) => row?.sync_state === "sync")
    }

    const at = (url: Redacted.Redacted, other: number) => {
      const moved = new URL(Redacted.value(url))
      moved.port = String(other)
      return Redacted.make(moved.href)
    }
    const promoted = at(primary.ownerUrl, port)
    return {
      url: at(primary.appUrl, network.port),
      ownerUrl: at(primary.ownerUrl, network.port),
      lag: Effect.sync(between.hold),
      failOver: Effect.gen(function* () {
        process.kill(primary.pid, "SIGKILL")
        yield* primary.exited
        yield* ask(promoted, "select pg_promote(true, 30)")
        network.point(new URL(Redacted.value(promoted)))
      }).pipe(Effect.orDie),
    }
  }).pipe(Effect.orDie)
