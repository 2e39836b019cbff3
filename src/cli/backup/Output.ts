/**
 * The output of a backup: a file that appears complete or not at all, readable by its owner alone; or standard output.
 */
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
  /** Completes the output: the file has its name on the disk before this returns. */
  readonly finish: () => Promise<void>
}

const stdout: Output = {
  write: async (bytes) => {
    if (!process.stdout.write(bytes)) await once(process.stdout, "drain")
  },
  finish: async () => {
    // The callback of an empty write reports whether the bytes before it arrived.
    await new Promise<void>((resolve, reject) => process.stdout.write("", (error) => error ? reject(error) : resolve()))
    wholeOrNothing(null)
  },
}

const synced = async (handle: FileHandle) => {
  await handle.sync()
  await handle.close()
}

const taken = (file: string) => `${file} exists already: name another file, or add --force`

const isThere = (file: string) => lstat(file).then(() => true, () => false)

/** Refuses a path that no file can replace, before work that may take hours. */
const mustBeFile = async (file: string) => {
  if (file === "") throw new Error("name a file")
  if (await lstat(file).then((there) => there.isDirectory(), () => false)) throw new Error("it is a folder")
}

/** Fails where the path exists: checked before work that may take hours, and once more after it. */
export const mustBeFree = (file: string) =>
  file === "-" ? Effect.void : Effect.flatMap(
    Effect.promise(() => isThere(file)),
    (there) => there ? Effect.fail(new CliFault({ message: taken(file) })) : Effect.void,
  )

/**
 * Gives the file its name unless that was taken meanwhile. Where the file system has no hard links, a check before the
 * rename is all that can be done.
 */
const takeFree = async (unfinished: string, file: string) => {
  const linked = await link(unfinished, file).then(() => true, () => false)
  if (linked) return await rm(unfinished)
  if (await isThere(file)) throw new Error(taken(file))
  await rename(unfinished, file)
}

/** Opens the output. Without `finish` no file is left when the scope closes. `force`: replaces a file that exists. */
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
      // Syncs the folder: the name is to be on the disk, too.
      await open(dirname(file), "r").then(synced).catch(() => {})
    },
  })))
