/** Where a backup goes: a file that appears whole or not at all, for its owner's eyes only; or standard output. */
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import process from "node:process"
import { CliFault } from "../CliFault.ts"
import { reasonOf } from "../Report.ts"

export interface Output {
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** All of it is written: it takes its name, on the disk before this returns. */
  readonly finish: () => Promise<void>
}

const stdout: Output = {
  write: async (bytes) => {
    if (!process.stdout.write(bytes)) await once(process.stdout, "drain")
  },
  finish: () => Promise.resolve(),
}

const synced = async (handle: FileHandle) => {
  await handle.sync()
  await handle.close()
}

/** Without `finish` nothing is left when the scope closes. */
export const outputTo = (file: string) =>
  file === "-" ? Effect.succeed(stdout) : Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
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
      await rename(made.unfinished, file)
      made.finished = true
      // The name, too.
      await open(dirname(file), "r").then(synced).catch(() => {})
    },
  })))
