/**
 * `log`: the key of the transparency log, and a verifier of a whole log that trusts nothing but the keys it is told. The
 * verifier is the kit's: it shares no code with what writes the log.
 */
import { Console, Effect, FileSystem, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { join } from "node:path"
import { noteKey } from "../../sdk/SignedNote.ts"
import { Refusal } from "../../sdk/Refusal.ts"
import type { TreeHead } from "../../sdk/TransparencyLog.ts"
import { type ReadLogFile, verifyLog } from "../../sdk/WholeLog.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { Outbound } from "../../services/platform/Outbound.ts"
import { CliFault } from "./CliFault.ts"
import { database } from "./Instance.ts"
import { printable } from "./EscapeControls.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const key = Command.make(
  "key",
  {},
  Effect.fn("cli.log.key")(function* () {
    const { sql } = yield* Database
    const keys = yield* sql<{ key: string }>`select verifier_key as key from log_keys`
    if (keys.length === 0) return yield* new CliFault({ message: "the log has not begun" })
    for (const { key } of keys) yield* Console.log(key)
  }, Effect.provide(database)),
).pipe(Command.withDescription("Prints the log's key, as verifiers are told it"))

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

/** A head that was verified before: its size and root, as `verify` writes them. */
const remembered = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists(file))) return null
  const [, size, root] = /^(\d{1,15}) ([A-Za-z0-9+/]{43}=)\n$/.exec(yield* files.readFileString(file)) ?? []
  if (size === undefined || root === undefined) {
    return yield* new CliFault({ message: `${file} is not a head that this command has written` })
  }
  return { size: Number(size), root: Buffer.from(root, "base64") }
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
    remember: Flag.String("remember").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("Compare with the head in this file, and then keep the new one there"),
      Flag.optional,
    ),
  },
  Effect.fn("cli.log.verify")(function* ({ keys, quorum, remember, source, witnesses }) {
    const origin = yield* Effect.try({
      try: () => noteKey(keys[0]!).name,
      catch: (error) => new CliFault({ message: printable(`--key: ${String(error)}`) }),
    })
    const file = Option.getOrNull(remember)
    const before = file === null ? null : yield* remembered(file)
    const policy = { origin, logKeys: keys, witnessKeys: witnesses, quorum }
    const head = yield* verified(yield* reading(source), policy, before)
    const root = Buffer.from(head.root).toString("base64")
    if (file !== null) yield* (yield* FileSystem.FileSystem).writeFileString(file, `${head.size} ${root}\n`)
    const continued = before === null ? "" : `, continues the ${before.size} of before`
    yield* Console.log(printable(`${origin}: ${head.size} entries, ${head.witnesses.length} witnesses${continued}`))
  }, Effect.provide(outbound)),
).pipe(
  Command.withDescription("Verifies a whole log offline: its checkpoint, all entries, and what was verified before"),
)

export const log = Command.make("log").pipe(
  Command.withDescription("The transparency log of decisions"),
  Command.withSubcommands([key, verify]),
)
