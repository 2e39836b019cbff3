/**
 * `deno task kit [folder]`: builds the npm package @bailiwick/lifecycle from sdk/, as ES modules with declarations,
 * into dist/lifecycle or the given folder. `npm pack` and `npm publish` then run in that folder; sdk/package.json names
 * its files. JSR takes the sources as they are (sdk/deno.json).
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const kit = join(root, "sdk")
const folder = resolve(process.argv[2] ?? join(root, "dist/lifecycle"))

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

// The compiler reads its files from a configuration; beside node_modules it finds the types of Node.
const made = mkdtempSync(join(root, "node_modules/.kit-"))
try {
  const configuration = join(made, "tsconfig.json")
  writeFileSync(
    configuration,
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      include: [join(kit, "*.ts"), join(kit, "stores/*.ts")],
      compilerOptions: {
        ...{ noEmit: false, declaration: true, rewriteRelativeImportExtensions: true },
        ...{ incremental: false, tsBuildInfoFile: null, target: "es2024", rootDir: kit, outDir: folder },
      },
    }),
  )
  const compiler = join(root, "node_modules/typescript/bin/tsc")
  const runtime = process.versions.deno === undefined ? [] : ["run", "-A"]
  const { status } = spawnSync(process.execPath, [...runtime, compiler, "-p", configuration], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
} finally {
  rmSync(made, { recursive: true, force: true })
}

// TypeScript 7.0 rewrites `./X.ts` in modules and leaves it in declarations, where only `./X.js` has a file.
for (const path of globSync("**/*.d.ts", { cwd: folder }).map((name) => join(folder, name))) {
  const text = readFileSync(path, "utf8")
  writeFileSync(path, text.replace(/(from "|import\(")(\.{1,2}\/[\w/.-]+)\.ts"/g, '$1$2.js"'))
}
for (const name of ["package.json", "README.md"]) cpSync(join(kit, name), join(folder, name))
cpSync(join(root, "LICENSE"), join(folder, "LICENSE"))
