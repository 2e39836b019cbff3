/** Where a backup goes: a file that appears whole or not at all, for its owner's eyes only; or standard output. */
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { type FileHandle, link, lstat, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import process from "node:process"
import { CliFault } from "../CliFault.ts"
import { reasonOf } from "../Reason.ts"
import { wholeOrNothing } from "../StandardOutput.ts"

export interface Output {
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** All of it is written: it takes its name, on the disk before this returns. */
  readonly finish: () => Promise<void>
}

const stdout: Output = {
  write: async (bytes) => {
    if (!process.stdout.write(bytes)) await once(process.stdout, "drain")
  },
  finish: async () => {
    // Whether the last of it arrived is told after a turn.
    await new Promise<void>((resolve, reject) => process.stdout.write("", (error) => error ? reject(error) : resolve()))
    wholeOrNothing(null)
  },
}

const synced = async (handle: FileHandle) => {
  await handle.sync()
  await handle.close()
}

const taken = (file: string) => `${file} is there already: name another file, or type --force`

const isThere = (file: string) => lstat(file).then(() => true, () => false)

/** What no file can take the place of is found before what may take hours. */
const mustBeFile = async (file: string) => {
  if (file === "") throw new Error("name a file")
  if (await lstat(file).then((there) => there.isDirectory(), () => false)) throw new Error("it is a folder")
}

/** Fails where something goes by this name: told before what may take hours, and looked at once more after that. */
export const mustBeFree = (file: string) =>
  file === "-" ? Effect.void : Effect.flatMap(
    Effect.promise(() => isThere(file)),
    (there) => there ? Effect.fail(new CliFault({ message: taken(file) })) : Effect.void,
  )

/** Takes a name that nobody took meanwhile; where a file cannot have two names, to look is all that can be done. */
const takeFree = async (unfinished: string, file: string) => {
  const linked = await link(unfinished, file).then(() => true, () => false)
  if (linked) return await rm(unfinished)
  if (await isThere(file)) throw new Error(taken(file))
  await rename(unfinished, file)
}

/** Without `finish` nothing is left when the scope closes. `force`: in place of what goes by this name. */
export const outputTo = (file: string, { force }: { readonly force: boolean }) =>
  file === "-" ? Effect.as(Effect.sync(() => wholeOrNothing("no backup was made")), stdout) : Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        await mustBeFile(file)
        const unfinished = `${file}.unfinished-${randomBytes(4).toString("hex")}`
        return { unfinished, handle: await open(unfinished, "wx", 0o600), finished: false }
      },
      catch: (error) => new CliFault({ message: `cannot write ${file}: ${reasonOf(error)}` }),
    }),
    (made) =>
      Effect.promise(async () => {
        if (made.finished) return
        await made.handle.close().catch(() => {})
        await rm(made.unfinished, { force: true })
      }),
  ).pipe(Effect.map((made): Output => ({
    write: async (bytes) => {
      for (let at = 0; at < bytes.length;) at += (await made.handle.write(bytes, at)).bytesWritten
    },
    finish: async () => {
      await synced(made.handle)
      await (force ? rename : takeFree)(made.unfinished, file)
      made.finished = true
      // The name, too.
      await open(dirname(file), "r").then(synced).catch(() => {})
    },
  })))
