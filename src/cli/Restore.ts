/**
 * `restore`: puts a backup into an empty database, completely or not at all. Decisions made after the backup are lost
 * here, but not everywhere: the next start begins a new epoch, held until what was revoked since is revoked again
 * (Epochs).
 */
import { Clock, Console, Effect, Option, Stdio, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { Buffer } from "node:buffer"
import { timingSafeEqual } from "node:crypto"
import { createWriteStream, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Database } from "../../services/platform/database/Database.ts"
import { checkValue, parseRing, readRing, VaultError } from "../../services/platform/security/KeyRing.ts"
import type { AppConfig } from "../AppConfig.ts"
import { refuseUnfilled } from "../MigrationBackfills.ts"
import { migrateWith, migrations, newest, tables } from "../Migrations.ts"
import { connect } from "./backup/BackupConnection.ts"
import { fill } from "./backup/RestoreTables.ts"
import { beginUnfinished } from "./backup/UnfinishedMigration.ts"
import type { Manifest } from "./backup/Format.ts"
import { openBackup } from "./backup/BackupReader.ts"
import { serverOf } from "./backup/PostgresServer.ts"
import { backupProgress } from "./backup/BackupProgress.ts"
import { CliFault } from "./CliFault.ts"
import { databaseAt, instance } from "./Instance.ts"
import { reasonOf } from "./Reason.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const file = Argument.String("FILE").pipe(Argument.withDescription("A file that backup wrote; - is standard input"))

/** Keeps a CliFault, and makes one of any other error. */
const faultOf = (what: string) => (error: unknown) =>
  error instanceof CliFault ? error : new CliFault({ message: `${what}: ${reasonOf(error)}` })

/** A backup is checked before any row is written, and standard input cannot be read twice: keep it in a file. */
const spooled = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "bailiwick-restore-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  )
  const path = join(folder, "backup")
  const bytes = Stream.toAsyncIterable((yield* Stdio.Stdio).stdin)
  yield* Effect.tryPromise({
    try: () => pipeline(Readable.from(bytes), createWriteStream(path, { mode: 0o600 })),
    catch: faultOf("cannot read standard input"),
  })
  return path
})

const ringOf = (config: AppConfig) =>
  Effect.try({
    try: () => config.keys === null ? readRing(config.keysFile ?? "") : parseRing(config.keys, "BAILIWICK_KEYS"),
    catch: (error) => new CliFault({ message: error instanceof VaultError ? error.message : String(error) }),
  })

/** Without its keys no program could open the restored database. */
const mustHaveKeys = Effect.fnUntraced(function* (config: AppConfig, { keys }: Manifest) {
  const ring = yield* ringOf(config)
  const where = config.keys === null ? `BAILIWICK_KEYS_FILE ${config.keysFile}` : "BAILIWICK_KEYS"
  for (const { check, kid } of keys) {
    const key = ring?.keys.get(kid)
    if (key === undefined) {
      return yield* new CliFault({ message: `${where} lacks key ${kid}, which the backup's secrets are sealed under` })
    }
    const known = Buffer.from(check, "hex")
    const own = Buffer.from(checkValue(kid, key))
    if (known.length !== own.length || !timingSafeEqual(known, own)) {
      return yield* new CliFault({ message: `${where}: its key ${kid} is another one than the backup's` })
    }
  }
})

const run = Effect.fnUntraced(function* (file: string) {
  const found = yield* instance
  if (found.config.databaseUrl === null && Option.isSome(found.runtime)) {
    return yield* new CliFault({
      message: "an instance runs in this home: stop it, and restore into an empty database",
    })
  }
  const { clear, tell } = yield* backupProgress
  const path = file === "-" ? yield* spooled : file
  const backup = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => openBackup(path, tell), catch: faultOf(`cannot read ${file}`) }),
    ({ close }) => Effect.promise(close),
  )
  yield* mustHaveKeys(found.config, backup.manifest)
  const urls = yield* serverOf(found, true)
  const otherwise = found.config.databaseUrl === null
    ? { otherwise: `type "${cliCommand("reset --database")}" to remove this home's` }
    : {}
  const { schema, unfinished } = backup.manifest
  const now = yield* Effect.provide(
    Effect.gen(function* () {
      // Makes the backup's schema in an empty database, where the next start goes on: a later migration may need a
      // backfill that the backup has not finished. A schema that is there already stays.
      yield* migrateWith(refuseUnfilled, schema)
      if (unfinished) yield* beginUnfinished((yield* Database).owner, migrations, unfinished)
      return new Date(yield* Clock.currentTimeMillis)
    }),
    databaseAt(urls),
  )
  const db = yield* connect(urls.ownerUrl ?? urls.url)
  const rows = yield* Effect.tryPromise({
    try: () => fill(db, backup, { now, tables, tell, ...otherwise }),
    catch: faultOf("nothing was restored"),
  })
  yield* clear
  yield* Console.log(`${rows} rows restored as of ${backup.manifest.made_at}`)
  if (schema < newest) {
    yield* Console.log(
      `the schema is ${schema}, as it was: the next start, or "${cliCommand("migrate")}", brings it to ${newest}`,
    )
  }
  yield* Console.log(
    `the next start begins a new epoch after ${backup.manifest.epoch} and is held until what was revoked since is ` +
      `revoked again: "${cliCommand("installation show")}" says how far it is`,
  )
}, Effect.scoped)

export const restore = Command.make(
  "restore",
  { file },
  Effect.fn("cli.restore")(({ file }) => run(file)),
).pipe(Command.withDescription("Puts a backup into an empty database, completely or not at all"))
