/**
 * Chooses the user for PostgreSQL, which refuses to run as root. Started as root, it runs as the owner of an existing
 * data folder, else as the system's `postgres`, else as `nobody`; started by any other user, as that user.
 */
import { Effect } from "effect"
import { existsSync, readFileSync, statSync } from "node:fs"
import process from "node:process"
import type { ServerUser } from "./ServerUser.ts"
import { run } from "./ChildProcess.ts"
import { EmbeddedError } from "./EmbeddedError.ts"

const isRoot = () => process.getuid?.() === 0

const account = (name: string): ServerUser | undefined => {
  if (!existsSync("/etc/passwd")) return undefined
  const line = readFileSync("/etc/passwd", "utf8").split("\n").find((line) => line.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(":") ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }
}

/** The user to run PostgreSQL as; undefined where no change is needed. */
export const serverUser = Effect.fn("ServerUser.serverUser")(function* (data: string) {
  if (!isRoot()) return undefined
  if (existsSync(data) && statSync(data).uid !== 0) return { uid: statSync(data).uid, gid: statSync(data).gid }
  const user = account("postgres") ?? account("nobody")
  if (user !== undefined) return user
  return yield* new EmbeddedError({
    message: "PostgreSQL does not run as root and this system has no user postgres or nobody: start as another user",
  })
})

/** Whether the user can enter the folder. The system is asked, since modes alone do not tell (ACLs, mounts). */
export const canEnter = (user: ServerUser | undefined, folder: string) =>
  user === undefined
    ? Effect.succeed(true)
    : run({ file: "/bin/sh", args: ["-c", `cd "$0"`, folder], cwd: "/", user }).pipe(
      Effect.as(true),
      Effect.orElseSucceed(() => false),
    )
