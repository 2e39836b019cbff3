/**
 * The npm package `bailiwick` as its users get it: built, packed, installed from the tarball into an empty folder, and
 * started there on each Node that it names, with nothing of the checkout in reach.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import * as Processes from "../support/Processes.ts"

const run = async (cwd: string, file: string, ...args: ReadonlyArray<string>) => {
  // Node warns of two variables that contradict each other.
  const { FORCE_COLOR: _, ...own } = process.env
  const { stdout } = await promisify(execFile)(file, [...args], { cwd, env: { ...own, NO_COLOR: "1" } })
  return stdout.trim()
}

/** The package, built and packed once for all cases. */
class Packed extends Context.Service<Packed, { readonly folder: string; readonly tarball: string }>()(
  "bailiwick/test/long/BundlePackage/Packed",
) {
  static readonly layer = Layer.effect(Packed, Effect.suspend(() => packed))
}

const packed = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "bundle-"))
    // As root the server runs as another user, who enters the installed package.
    chmodSync(folder, 0o755)
    const built = join(folder, "built")
    const [command, ...args] = Processes.runtime()
    await run(Processes.root, command!, ...args, ".ci/bundle.mjs", built)
    const name = (await run(built, "npm", "pack", "--silent", "--pack-destination", folder)).split("\n").at(-1)!
    return { folder, tarball: join(folder, name) }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
)

/** An empty folder with the tarball installed. */
const installed = (name: string, { folder, tarball }: Packed["Service"], ...how: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const cwd = join(folder, name)
    mkdirSync(cwd)
    writeFileSync(join(cwd, "package.json"), `{"private":true}`)
    const quiet = ["--silent", "--no-audit", "--no-fund", "--prefer-offline"]
    await run(cwd, "npm", "install", ...quiet, ...how, tarball)
    return cwd
  })

const nodeOf = (version: string) =>
  Effect.promise(() => run(Processes.root, "npx", "-y", "-p", `node@${version}`, "-c", "command -v node"))

const get = (url: string) =>
  Effect.promise(async () => {
    const answer = await fetch(url)
    return { status: answer.status, text: await answer.text() }
  })

/** Starts it as `version` of Node does, looks at its pages and its commands, and stops it. */
const tried = Effect.fnUntraced(function* (cwd: string, version: string) {
  const command = [yield* nodeOf(version)]
  const module = join(cwd, "node_modules/.bin/bailiwick")
  const BAILIWICK_HOME = yield* Processes.home
  const typed = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
    const program = yield* Processes.start({ command, module, args, cwd, env: { BAILIWICK_HOME } })
    const code = yield* program.exited
    return { code, output: program.output() }
  }, Effect.scoped)

  assert.match(
    (yield* typed(["migrate"])).output,
    /^no instance runs with .*: type "bailiwick start" in another terminal/,
  )
  const env = { BAILIWICK_HOME, PORT: "0" }
  const program = yield* Processes.start({ command, module, args: ["start"], cwd, env })
  const [, origin] = yield* program.line(/bailiwick ready on (http:\S+)/)
  yield* program.line(/demo accounts .*demo\.json/)

  assert.strictEqual((yield* get(`${origin}/ready`)).status, 200)
  const shell = yield* get(`${origin}/console/`)
  const [, script] = /<script type="module" src="([^"]+)"/.exec(shell.text)!
  assert.strictEqual((yield* get(`${origin}${script}`)).status, 200)
  assert.strictEqual((yield* get(`${origin}/v1/docs`)).status, 200)

  const doctor = yield* typed(["doctor"])
  assert.strictEqual(doctor.code, 0, doctor.output)
  assert.match(doctor.output, /^ok {3}schema /m)
  const demo = JSON.parse(readFileSync(join(BAILIWICK_HOME, "demo.json"), "utf8"))
  const token = yield* typed(["token", "--person", demo.people.ada.id])
  assert.match(token.output, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  const wrong = yield* typed(["token", "--nobody"])
  assert.strictEqual(wrong.code, 1)
  assert.match(wrong.output, /type "bailiwick token --help"\n$/)

  yield* program.kill("SIGTERM")
  assert.strictEqual(yield* program.exited, 0, program.output())
  assert.isFalse(existsSync(join(BAILIWICK_HOME, "runtime.json")))
}, Effect.scoped)

layer(Packed.layer, { excludeTestServices: true, timeout: "2 minutes" })("the package bailiwick", (it) => {
  it.effect(
    "starts, shows its console, runs its commands and stops on Node 22 and 24, from the installed tarball",
    () =>
      Effect.gen(function* () {
        const cwd = yield* installed("whole", yield* Packed)
        assert.isFalse(existsSync(join(cwd, "node_modules/effect")), "the bundle has everything but the servers")
        for (const version of ["22.19.0", "24.21.0"]) yield* tried(cwd, version)
      }).pipe(Effect.scoped),
    400_000,
  )

  it.effect(
    "says what to do where the embedded servers were not installed, or Node is too old",
    () =>
      Effect.gen(function* () {
        const cwd = yield* installed("bare", yield* Packed, "--omit=optional")
        const module = join(cwd, "node_modules/.bin/bailiwick")
        const started = Effect.fnUntraced(function* (version: string, own: Readonly<Record<string, string>> = {}) {
          const env = { BAILIWICK_HOME: yield* Processes.home, PORT: "0", ...own }
          const command = [yield* nodeOf(version)]
          const program = yield* Processes.start({ command, module, args: ["start"], cwd, env })
          return { code: yield* program.exited, output: program.output() }
        }, Effect.scoped)
        const without = yield* started("24.21.0")
        assert.strictEqual(without.code, 1)
        assert.match(without.output, /PostgreSQL's programs are not installed.*--include=optional, or start PostgreSQL/)
        assert.notMatch(without.output, /\n {4}at /)
        // Minified, it still names the functions of a stack trace.
        const traced = join(cwd, "traced.mjs")
        writeFileSync(
          traced,
          `const { on } = process
          process.on = function (name, ...rest) {
            if (name === "SIGHUP") process.stderr.write(new Error("traced").stack + "\\n")
            return on.call(this, name, ...rest)
          }`,
        )
        const trace = yield* started("24.21.0", { NODE_OPTIONS: `--import=${traced}` })
        assert.match(trace.output, /Error: traced\n(?: {4}at .*\n)* {4}at endOnHangUp \(.*\.js:\d+:\d+\)\n/)
        const env = { BAILIWICK_HOME: yield* Processes.home, npm_command: "exec" }
        const by = yield* Processes.start({ command: [yield* nodeOf("24.21.0")], module, args: ["migrate"], cwd, env })
        assert.strictEqual(yield* by.exited, 1)
        assert.match(by.output(), /type "npx bailiwick start"/)
        const old = yield* started("20.20.2")
        assert.deepStrictEqual(old, { code: 1, output: "bailiwick needs Node 22.19 or newer: this is Node 20.20.2\n" })
      }).pipe(Effect.scoped),
    240_000,
  )
})
