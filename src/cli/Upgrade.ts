/**
 * `upgrade rehearse`: tries the migrations that are missing on a backup, and prints what the upgrade will take.
 * `upgrade finish`: closes the database to older programs.
 */
import { Console, Effect, Layer } from "effect"
import { Argument, Command } from "effect/cli"
import { finishUpgrade } from "../../services/operations/FinishUpgrade.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { migrations, newest } from "../Migrations.ts"
import { backupProgress } from "./backup/BackupProgress.ts"
import { openBackup } from "./backup/BackupReader.ts"
import { CliFault, Unsuccessful } from "./CliFault.ts"
import { printableJson } from "./EscapeControls.ts"
import { database, databaseUrls, instance } from "./Instance.ts"
import { jsonFlag } from "./JsonFlag.ts"
import { asFlag, operatorNamed, reasonFlag } from "./OperatorName.ts"
import { reasonOf } from "./Reason.ts"
import { type Rehearsal, rehearse, type RehearsedBackfill, type RehearsedMigration } from "./upgrade/Rehearsal.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const file = Argument.String("FILE").pipe(Argument.withDescription("A file that backup wrote"))

const seconds = (millis: number) => `${(millis / 1_000).toFixed(2)} s`

/** Requests that wait for a lock that is held for longer are noticeably slow. */
const feltMillis = 1_000

const minutes = (n: number) => n < 0.1 ? "less than 0.1 minutes" : `${n.toFixed(1)} minutes`

const backfillLine = ({ changed, minutesAtFloor, minutesAtRate, name, read }: RehearsedBackfill) =>
  `  backfill ${name} reads ${read} rows and changes ${changed}` +
  (changed === 0
    ? ""
    : `: besides the reading, ${minutes(minutesAtRate)} at BACKFILL_RATE (${
      Math.round(changed / minutesAtRate / 60)
    } a second), ${minutes(minutesAtFloor)} at BACKFILL_FLOOR (${Math.round(changed / minutesAtFloor / 60)})`)

/** What a backfill adds to the plan: programs of the version before go on with it, and a start of this one is refused until then. */
const fillingOf = (migrations: ReadonlyArray<RehearsedMigration>): ReadonlyArray<string> => {
  const open = migrations.flatMap(({ backfills }) => backfills).filter(({ changed }) => changed > 0)
  return open.length === 0 ? [] : [
    `first leave the version before running until "${cliCommand("doctor")}" says that ${
      open.map(({ name }) => name).join(", ")
    } is finished, or have "${cliCommand("migrate")}" finish it in that time: no request waits for either`,
  ]
}

/** The lines of a rehearsal: each migration with its locks, what changed, and the plan. */
export const linesOf = ({ changed, from, migrations, rows }: Rehearsal): ReadonlyArray<string> => {
  if (migrations.length === 0) return [`${rows} rows of schema ${from}: nothing to apply`]
  const total = migrations.reduce((sum, { millis }) => sum + millis, 0)
  const felt = migrations.filter(({ locks }) => locks.some(({ millis }) => millis > feltMillis))
  return [
    `${rows} rows of schema ${from}`,
    ...migrations.flatMap(({ backfills, locks, millis, name }) => [
      `${name} takes ${seconds(millis)}${locks.length === 0 ? ", and no lock that was seen" : ""}`,
      ...backfills.map(backfillLine),
      ...locks.map((lock) => `  ${lock.mode} on ${lock.table} for ${seconds(lock.millis)}`),
    ]),
    ...(changed.length === 0
      ? ["every table has the rows and values that it had, and every project's history comes to them"]
      : changed),
    `plan: back up, type "${cliCommand("migrate")}" with DATABASE_OWNER_URL (${
      seconds(total)
    } here), then replace the ` +
    "processes one by one",
    ...fillingOf(migrations),
    ...(felt.length === 0
      ? ["no lock is held for over a second: the processes may run meanwhile"]
      : [`${felt.map(({ name }) => name).join(", ")} hold a lock for over a second: choose a quiet hour`]),
  ]
}

const run = Effect.fnUntraced(function* (file: string, json: boolean) {
  const found = yield* instance
  const { ownerUrl, url } = yield* databaseUrls(found)
  const pace = { floor: found.config.backfillFloor, ceiling: found.config.backfillRate }
  const { clear, tell } = yield* backupProgress
  const backup = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => openBackup(file, tell),
      catch: (error) =>
        error instanceof CliFault ? error : new CliFault({ message: `cannot read ${file}: ${reasonOf(error)}` }),
    }),
    ({ close }) => Effect.promise(close),
  )
  const rehearsal = yield* rehearse(backup, ownerUrl ?? url, migrations, pace, tell)
  yield* clear
  for (const line of json ? [printableJson(rehearsal)] : linesOf(rehearsal)) yield* Console.log(line)
  if (rehearsal.changed.length > 0) return yield* new Unsuccessful()
}, Effect.scoped)

const rehearseCommand = Command.make(
  "rehearse",
  { file, json: jsonFlag },
  Effect.fn("cli.upgrade.rehearse")(({ file, json }) => run(file, json)),
).pipe(
  Command.withDescription("Migrates a backup in a scratch database beside this one; measures minutes and locks"),
)

const finishCommand = Command.make(
  "finish",
  { as: asFlag, reason: reasonFlag },
  Effect.fn("cli.upgrade.finish")(function* ({ as, reason }) {
    const became = yield* Effect.provideService(finishUpgrade(newest, reason), CurrentOperator, operatorNamed(as))
    if (became === "not migrated") {
      return yield* new CliFault({ message: `migrations are missing: type "${cliCommand("migrate")}" first` })
    }
    if (became === "not the owner") {
      return yield* new CliFault({ message: "only the tables' owner closes the database: set DATABASE_OWNER_URL" })
    }
    yield* Console.log(
      became === "closed"
        ? `no program before version ${newest} works on this database any more`
        : `the database was closed to programs before version ${newest} already`,
    )
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(
  Command.withDescription("Closes the database to programs of the versions before, once the last of them is replaced"),
)

export const upgrade = Command.make("upgrade").pipe(
  Command.withDescription("Prepares the upgrade to this version, and ends it"),
  Command.withSubcommands([rehearseCommand, finishCommand]),
)
