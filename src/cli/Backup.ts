/** `backup`: writes the whole database into one file while the program runs. */
import { Clock, Console, Effect, Layer } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { constants, setPriority } from "node:os"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { tables } from "../Migrations.ts"
import { connect } from "./backup/BackupConnection.ts"
import type { Manifest } from "./backup/Format.ts"
import { mustBeFree, outputTo } from "./backup/Output.ts"
import { serverOf } from "./backup/PostgresServer.ts"
import { backupProgress } from "./backup/BackupProgress.ts"
import { writeBackup } from "./backup/BackupWriter.ts"
import { CliFault } from "./CliFault.ts"
import { databaseAt, instance } from "./Instance.ts"
import { reasonOf } from "./Reason.ts"

const file = Argument.String("FILE").pipe(
  Argument.withDescription("The file to write, readable by this user alone; - is standard output"),
)

const force = Flag.Boolean("force").pipe(
  Flag.withDescription("Replaces a file that exists"),
  Flag.withDefault(false),
)

/** Records in the audit that all data was copied out of the database. */
const recorded = Effect.fnUntraced(function* ({ epoch, made_at, parts }: Manifest) {
  yield* (yield* Audit).append({
    action: "backup.made",
    actor: "operator",
    subject: `installation:${epoch}`,
    outcome: "done",
    details: { made_at, rows: parts.reduce((sum, part) => sum + part.rows, 0) },
  })
})

/** Lets other programs on the same cores go first: reading and packing every row takes a core for as long as it lasts. */
const giveWay = Effect.ignore(Effect.try(() => setPriority(constants.priority.PRIORITY_BELOW_NORMAL)))

const run = Effect.fnUntraced(function* (file: string, force: boolean) {
  yield* giveWay
  if (!force) yield* mustBeFree(file)
  const found = yield* instance
  const urls = yield* serverOf(found, false)
  // By the database's clock, and before the snapshot that is written.
  const madeAt = new Date(yield* Effect.provide(Clock.currentTimeMillis, databaseAt(urls)))
  const { clear, tell } = yield* backupProgress
  const db = yield* connect(urls.url)
  const out = yield* outputTo(file, { force })
  const manifest = yield* Effect.tryPromise({
    try: () => writeBackup(db, out, { madeAt, tables, tell }),
    catch: (error) => new CliFault({ message: `no backup was made: ${reasonOf(error)}` }),
  })
  yield* clear
  yield* Effect.provide(recorded(manifest), Audit.layer.pipe(Layer.provideMerge(databaseAt(urls))))
  const rows = manifest.parts.reduce((sum, part) => sum + part.rows, 0)
  const bytes = manifest.parts.reduce((sum, part) => sum + part.bytes, 0)
  const say = file === "-" ? Console.error : Console.log
  yield* say(
    `${rows} rows of ${manifest.parts.length} tables, ${(bytes / 1e6).toFixed(1)} MB, as of ${manifest.made_at}, ` +
      `epoch ${manifest.epoch}`,
  )
  const ring = found.config.keys === null ? found.config.keysFile : "BAILIWICK_KEYS"
  const kids = manifest.keys.map(({ kid }) => kid).join(", ")
  yield* say(
    kids === ""
      ? "it holds no secrets yet"
      : `its secrets are sealed and the key ring is not in it: keep ${kids} of ${ring}, apart from this file`,
  )
}, Effect.scoped)

export const backup = Command.make(
  "backup",
  { file, force },
  Effect.fn("cli.backup")(({ file, force }) => run(file, force)),
).pipe(Command.withDescription("Writes the whole database into one file, in one consistent view, while it is in use"))
