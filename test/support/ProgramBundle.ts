/**
 * The program and its command line, each with few files of JavaScript, for tests that start them: a start took 1.0 s of a
 * core, and 1.5 s from 700 modules of TypeScript. Each module keeps its own address, so that a bundled program behaves as
 * one from a checkout.
 *
 * The bundle lies in node_modules/.cache/programs/<hash of the sources>/, which gets its name when it is whole.
 */
import { Effect } from "effect"
import { build, type Plugin, stop } from "esbuild"
import { createHash, randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..")
const cache = join(root, "node_modules/.cache/programs")

/** The last one is the program that kills itself in test/long: some hundred starts of a whole run. */
const entries = ["src/main.ts", "src/cli/main.ts", "test/long/support/FaultMain.ts"]

/** How long a folder of other sources stays: another run may use it. */
const staysMillis = 86_400_000

const sources = () =>
  ["migrations", "schemas", "sdk", "services", "src"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts")).sort().map((name) => join(folder, name))
  )

const hashOf = () => {
  const hash = createHash("sha256")
  for (const path of [...sources(), ...entries.slice(2), "package.json", "test/support/ProgramBundle.ts"]) {
    hash.update(path).update("\0").update(readFileSync(join(root, path))).update("\0")
  }
  return hash.digest("hex").slice(0, 16)
}

const keptAddresses: Plugin = {
  name: "kept addresses",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8")
      if (!text.includes("import.meta.url")) return null
      return { loader: "ts", contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)) }
    }),
}

const written = async (folder: string) => {
  const fresh = join(cache, `fresh-${randomUUID()}`)
  await build({
    absWorkingDir: root,
    entryPoints: entries,
    outbase: ".",
    outdir: fresh,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22.19",
    // As in the npm package: names stay.
    minifySyntax: true,
    minifyWhitespace: true,
    external: ["esbuild", "pg-native", "*/httpApiScalar.js", "*/httpApiSwagger.js"],
    banner: { js: `import { createRequire as __of } from "node:module"; const require = __of(import.meta.url);` },
    plugins: [keptAddresses],
    logLevel: "warning",
  })
  // Its service is a process of its own.
  await stop()
  writeFileSync(join(fresh, "package.json"), `{ "type": "module" }\n`)
  try {
    renameSync(fresh, folder)
  } catch (error) {
    // Another builder was first: its files are the same.
    rmSync(fresh, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

const prune = (now: number) => {
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name)
    if (now - statSync(folder).mtimeMs > staysMillis) rmSync(folder, { recursive: true, force: true })
  }
}

/** Builds the bundle where it is not there yet; of concurrent workers one builds, and the others wait for its folder. */
const built = async (): Promise<string> => {
  const folder = join(cache, hashOf())
  mkdirSync(cache, { recursive: true })
  const building = `${folder}.building`
  while (!existsSync(folder)) {
    try {
      mkdirSync(building)
    } catch {
      // A builder that was killed left this behind.
      const age = Date.now() - (statSync(building, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
      if (age > 300_000) rmSync(building, { recursive: true, force: true })
      await new Promise((resolve) => setTimeout(resolve, 100))
      continue
    }
    try {
      if (!existsSync(folder)) await written(folder)
      prune(Date.now())
    } finally {
      rmSync(building, { recursive: true, force: true })
    }
  }
  return folder
}

let once: Promise<string> | null = null

/** The bundled file of a module, or the module where it is not one of the program's entries. */
export const bundled = (module: string): Effect.Effect<string> =>
  entries.includes(module)
    ? Effect.promise(async () => join(await (once ??= built()), module.replace(/\.ts$/, ".js")))
    : Effect.succeed(module)
