/**
 * Folders outside of a home: for programs that several homes of a user share, and, for root only, for data of a server
 * that runs as another user, who could not reach it inside the home.
 */
import { Effect } from "effect"
import { mkdirSync, statSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { EmbeddedError } from "./EmbeddedError.ts"
import { canEnter } from "./PostgresUser.ts"
import type { ServerUser } from "./ServerUser.ts"

/** `$XDG_CACHE_HOME/bailiwick`, or `~/.cache/bailiwick`. */
export const cacheFolder = () => join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "bailiwick")

/** Whether this user owns the folder: a folder that another user made first could hold that user's programs. */
export const isOurs = (folder: string) => process.getuid === undefined || statSync(folder).uid === process.getuid()

const made = (folder: string) => {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    return isOurs(folder)
  } catch {
    return false
  }
}

/** The first folder that can be made and that `user` can enter: the cache, /var/lib/bailiwick, one under the OS's temporary folder. */
export const sharedFolder = Effect.fn("SharedFolders.sharedFolder")(function* (user: ServerUser | undefined) {
  const who = process.getuid?.() ?? "user"
  const candidates = user === undefined
    ? [cacheFolder(), join(tmpdir(), `bailiwick-${who}`)]
    : ["/var/lib/bailiwick", join(tmpdir(), `bailiwick-${who}`)]
  for (const folder of candidates) if (made(folder) && (yield* canEnter(user, folder))) return folder
  return yield* new EmbeddedError({ message: `none of ${candidates.join(", ")} can be made and entered` })
})
