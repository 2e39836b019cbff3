/**
 * The kit as its users get it: built, packed, installed from the tarball into an empty folder, and followed with by the
 * first program of its README, on each runtime that it names, beside a running program that decides.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFile } from "node:child_process"
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { fixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { root, runtime, start } from "../support/Processes.ts"

const run = async (cwd: string, file: string, ...args: ReadonlyArray<string>) => {
  // Node warns of two variables that contradict each other.
  const { FORCE_COLOR: _, ...own } = process.env
  const { stderr, stdout } = await promisify(execFile)(file, [...args], { cwd, env: { ...own, NO_COLOR: "1" } })
  return stdout + stderr
}

/** The package's folder and its tarball, built once for all cases. */
class Packed extends Context.Service<Packed, {
  readonly folder: string
  readonly built: string
  readonly tarball: string
}>()("bailiwick/test/long/KitPackage/Packed") {
  static readonly layer = Layer.effect(Packed, Effect.suspend(() => packed))
}

const packed = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "kit-"))
    const built = join(folder, "built")
    const [command, ...args] = runtime()
    await run(root, command!, ...args, ".ci/kit.mjs", built)
    const [name] = (await run(built, "npm", "pack", "--silent", "--pack-destination", folder)).trim().split("\n")
    return { folder, built, tarball: join(folder, name!) }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
)

const [, first] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(root, "sdk/README.md"), "utf8"))!

/** The tarball installed by npm into an empty folder, with README's program. */
const installed = Effect.fnUntraced(function* (name: string, { folder, tarball }: Packed["Service"]) {
  const product = join(folder, name)
  mkdirSync(product)
  writeFileSync(join(product, "package.json"), `{"private":true}`)
  yield* Effect.promise(() => run(product, "npm", "install", "--silent", "--offline", tarball))
  writeFileSync(join(product, "follow.mjs"), first!)
  return product
})

const nodeOf = (version: string) =>
  Effect.promise(() => run(root, "npx", "-y", "-p", `node@${version}`, "-c", "command -v node"))

layer(Packed.layer, { excludeTestServices: true, timeout: "2 minutes" })("@bailiwick/lifecycle", (it) => {
  it.effect(
    "is what publint, Are The Types Wrong and JSR ask for, without tests or a client",
    () =>
      Effect.gen(function* () {
        const { built, folder, tarball } = yield* Packed
        assert.notMatch(
          yield* Effect.promise(() => run(built, "npx", "-y", "publint@0.3.25", "--strict")),
          /Suggestions|Warn/,
        )
        const types = ["-y", "@arethetypeswrong/cli@0.18.5", tarball, "--profile", "esm-only"]
        assert.match(yield* Effect.promise(() => run(built, "npx", ...types)), /@bailiwick\/lifecycle\/sqlite/)

        const { exports } = JSON.parse(readFileSync(join(built, "package.json"), "utf8"))
        const { exports: sources, version } = JSON.parse(readFileSync(join(root, "sdk/deno.json"), "utf8"))
        assert.strictEqual(version, JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version)
        const asSources = Object.entries(exports as Record<string, { default: string }>)
          .flatMap(([entry, { default: to }]) => to === undefined ? [] : [[entry, to.replace(/js$/, "ts")]])
        assert.deepStrictEqual(asSources, Object.entries(sources))

        const jsr = join(folder, "jsr")
        for (const path of globSync(["*.ts", "stores/*.ts", "deno.json", "README.md"], { cwd: join(root, "sdk") })) {
          cpSync(join(root, "sdk", path), join(jsr, path))
        }
        const deno = "Deno" in globalThis ? [process.execPath] : ["npx", "-y", "deno@2.9.6"]
        const dry = [...deno, "publish", "--dry-run", "--allow-dirty"] as const
        assert.match(yield* Effect.promise(() => run(jsr, dry[0]!, ...dry.slice(1))), /Dry run complete/)
      }),
    240_000,
  )

  it.effect(
    "ten lines of its README follow real events on Node 22, Node 24 and Deno, from the installed tarball",
    () =>
      Effect.gen(function* () {
        assert.lengthOf(first!.trim().split("\n"), 10)
        const kit = yield* Packed
        const port = yield* freePort()
        const program = yield* fixture({}, { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}` })
        yield* program.grant("product")
        const { pins, token } = yield* program.following("product")
        const env = {
          BAILIWICK_URL: program.instance.origin(),
          PROJECT_ID: ids.fernPortal,
          LIFECYCLE_TOKEN: token,
          LIFECYCLE_PINS: pins,
          ISSUER: demoIssuer,
          SUBJECT: "pat",
        }
        const deno = "Deno" in globalThis ? [process.execPath] : ["npx", "-y", "deno@2.9.6"]
        const runtimes = [
          ["node-22", [(yield* nodeOf("22.20.0")).trim()]],
          ["node-24", [(yield* nodeOf("24.21.0")).trim()]],
          ["deno", [...deno, "run", "-A"]],
        ] as const
        const products = yield* Effect.forEach(runtimes, ([name, command]) =>
          Effect.gen(function* () {
            const cwd = yield* installed(name, kit)
            return yield* start({ command, module: "follow.mjs", cwd, env })
          }))
        for (const product of products) yield* product.line(/opened \{\s*may: true/)
        const fields = { issuer: demoIssuer, subject: "pat", display_name: "Pat", email: "pat@fern.example" }
        const suspended = {
          kind: "person",
          id: ids.pat,
          version: 2,
          ...fields,
          email_verified: true,
          status: "suspended",
        }
        yield* program.apply(suspended)
        for (const product of products) {
          yield* product.line(/applied \{ may: false, because: ['"]account_disabled['"] \}/)
        }
      }).pipe(Effect.scoped),
    300_000,
  )
})
