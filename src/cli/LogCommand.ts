/**
 * `log`: the key of the transparency log, and a verifier of a whole log that trusts nothing but the keys it is told. The
 * verifier is the kit's: it shares no code with the log's writer.
 */
import { Console, Effect, FileSystem, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { join } from "node:path"
import process from "node:process"
import { noteKey } from "../../sdk/SignedNote.ts"
import { Refusal } from "../../sdk/Refusal.ts"
import type { TreeHead } from "../../sdk/TransparencyLog.ts"
import { type ReadLogFile, verifyLog } from "../../sdk/WholeLog.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { CurrentOperator } from "../../services/platform/observability/CurrentOperator.ts"
import { Outbound } from "../../services/platform/Outbound.ts"
import { addLogKey, retireLogKey } from "../../services/transparency/RotateLogKey.ts"
import { releaseLog } from "../../services/transparency/ReleaseLog.ts"
import { CliFault } from "./CliFault.ts"
import { database, vault } from "./Instance.ts"
import { asFlag, operatorNamed, reasonFlag } from "./OperatorName.ts"
import { printable, printableJson } from "./EscapeControls.ts"
import { jsonFlag } from "./JsonFlag.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const key = Command.make(
  "key",
  { json: jsonFlag },
  Effect.fn("cli.log.key")(function* ({ json }) {
    const { sql } = yield* Database
    const keys = yield* sql<{ key: string }>`
      select verifier_key as key from log_keys where retired_at is null order by created_at, verifier_key`
    if (keys.length === 0) return yield* new CliFault({ message: "the log has not begun" })
    for (const { key } of keys) yield* Console.log(json ? printableJson({ key }) : key)
  }, Effect.provide(database)),
).pipe(Command.withDescription("Prints the log's key, or both while it is replaced, as verifiers are told it"))

const release = Command.make(
  "release",
  { as: asFlag, reason: reasonFlag },
  Effect.fn("cli.log.release")(function* ({ as, reason }) {
    const held = yield* Effect.provideService((yield* releaseLog)(reason), CurrentOperator, operatorNamed(as))
    if (held === null) return yield* new CliFault({ message: "the log is not held" })
    yield* Console.log(`the log was held (${held}); it is compared with the broker again, and goes on where both fit`)
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(Command.withDescription("Ends the hold of the log on the operator's word that nothing else was published"))

const addKey = Command.make(
  "add-key",
  { as: asFlag, reason: reasonFlag },
  Effect.fn("cli.log.add-key")(function* ({ as, reason }) {
    const added = yield* Effect.provideService((yield* addLogKey())(reason), CurrentOperator, operatorNamed(as))
    if (added.key === null) return yield* new CliFault({ message: String(added.fault) })
    yield* Console.log(added.key)
  }, Effect.provide(Layer.mergeAll(vault, Audit.layer).pipe(Layer.provideMerge(database)))),
).pipe(
  Command.withDescription("Adds a second key to the log, which signs each checkpoint beside the first, and prints it"),
)

const retireKey = Command.make(
  "retire-key",
  { key: Argument.String("key"), as: asFlag, reason: reasonFlag },
  Effect.fn("cli.log.retire-key")(function* ({ as, key, reason }) {
    const fault = yield* Effect.provideService((yield* retireLogKey)(key, reason), CurrentOperator, operatorNamed(as))
    if (fault !== null) return yield* new CliFault({ message: fault })
    yield* Console.log("the key signs no more checkpoints, and its private half is deleted")
  }, Effect.provide(Layer.provideMerge(Audit.layer, database))),
).pipe(Command.withDescription("Ends the use of a log's key that another one has replaced"))

/** Files of a log over HTTP, and of a folder. */
const reading = Effect.fnUntraced(function* (source: string) {
  const outbound = yield* Outbound
  const files = yield* FileSystem.FileSystem
  const isUrl = /^https?:\/\//.test(source)
  const one = (path: string) =>
    isUrl
      ? Effect.flatMap(
        outbound.ask(`${source.replace(/\/$/, "")}/${path}`, { trusted: true }),
        ({ body, status }) => status === 200 ? Effect.succeed(body) : Effect.fail(new Error(`${path}: HTTP ${status}`)),
      )
      : files.readFile(join(source, path))
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const read: ReadLogFile = (path) => run(one(path))
  return read
})

/** A head of the log that was verified before, as `remember` writes it; null where there is no file. */
const remembered = Effect.fnUntraced(function* (file: string, origin: string) {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists(file))) return null
  const [, of, size, root] = /^(\S+)\n(\d{1,15}) ([A-Za-z0-9+/]{43}=)\n$/.exec(yield* files.readFileString(file)) ?? []
  if (of === undefined || size === undefined || root === undefined) {
    return yield* new CliFault({ message: `${file} is not a head that this command has written` })
  }
  if (of !== origin) return yield* new CliFault({ message: `${file} has a head of another log: ${of}` })
  return { size: Number(size), root: Buffer.from(root, "base64") }
})

/** Replaces the file whole, so that a kill leaves one head or the other. A run beside this one may know a larger one. */
const remember = Effect.fnUntraced(function* (file: string, origin: string, { root, size }: TreeHead) {
  const files = yield* FileSystem.FileSystem
  if (((yield* remembered(file, origin))?.size ?? 0) > size) return
  const fresh = `${file}.${process.pid}`
  yield* files.writeFileString(fresh, `${origin}\n${size} ${Buffer.from(root).toString("base64")}\n`)
  yield* Effect.scoped(Effect.flatMap(files.open(fresh, { flag: "r+" }), (opened) => opened.sync))
  yield* files.rename(fresh, file)
})

const verified = (
  read: ReadLogFile,
  policy: Parameters<typeof verifyLog>[1],
  before: Parameters<typeof verifyLog>[2],
) =>
  Effect.tryPromise({
    try: (): Promise<TreeHead> => verifyLog(read, policy, before ?? null),
    catch: (error) =>
      new CliFault({
        message: printable(
          error instanceof Refusal
            ? `the log is refused: ${error.message}`
            : `the log cannot be read: ${error instanceof Error ? error.message : String(error)}`,
        ),
      }),
  })

const outbound = Outbound.layer({ allowedCidrs: [], certificateAuthorities: [], timeoutMillis: 10_000, ownPorts: [] })

const verify = Command.make(
  "verify",
  {
    source: Argument.String("source").pipe(Argument.withDescription("The log's URL (https://HOST/log), or a folder")),
    keys: Flag.String("key").pipe(
      Flag.withMetavar("KEY"),
      Flag.withDescription(`The log's key, from its operator ("${cliCommand("log key")}")`),
      Flag.atLeast(1),
    ),
    witnesses: Flag.String("witness").pipe(
      Flag.withMetavar("KEY"),
      Flag.withDescription("The key of a witness; may be given several times"),
      Flag.atLeast(0),
    ),
    quorum: Flag.Int("quorum").pipe(
      Flag.withDescription("How many witnesses have to have cosigned (default: 0)"),
      Flag.withDefault(0),
    ),
    remembers: Flag.String("remember").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("Compare with the head in this file, and then keep the new one there"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("cli.log.verify")(function* ({ json, keys, quorum, remembers, source, witnesses }) {
    const origin = yield* Effect.try({
      try: () => noteKey(keys[0]!).name,
      catch: (error) => new CliFault({ message: printable(`--key: ${String(error)}`) }),
    })
    const file = Option.getOrNull(remembers)
    const before = file === null ? null : yield* remembered(file, origin)
    const policy = { origin, logKeys: keys, witnessKeys: witnesses, quorum }
    const head = yield* verified(yield* reading(source), policy, before)
    if (file !== null) yield* remember(file, origin, head)
    if (json) {
      const { root, size, witnesses } = head
      const shown = {
        origin,
        size,
        root: Buffer.from(root).toString("base64"),
        witnesses,
        before: before?.size ?? null,
      }
      return yield* Console.log(printableJson(shown))
    }
    const continued = before === null ? "" : `, continues the ${before.size} of before`
    yield* Console.log(printable(`${origin}: ${head.size} entries, ${head.witnesses.length} witnesses${continued}`))
  }, Effect.provide(outbound)),
).pipe(
  Command.withDescription("Verifies a whole log offline: its checkpoint, all entries, and what was verified before"),
)

export const log = Command.make("log").pipe(
  Command.withDescription("The transparency log of decisions"),
  Command.withSubcommands([key, addKey, retireKey, verify, release]),
)
