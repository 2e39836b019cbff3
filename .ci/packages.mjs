/**
 * `deno run -A .ci/packages.mjs [program]`: fetches the packages of a task where they are missing or old; every task that
 * needs packages begins with it. `program` is what a start needs, a third of all. Those packages have a lock file of their
 * own, since Deno 2.9.6 installs all that its lock file names, also with --prod. `task lock` writes both files.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const stamp = join(root, "node_modules/.packages.json")

const digest = (...names) => {
  const hash = createHash("sha256")
  for (const name of names) hash.update(readFileSync(join(root, name)))
  return hash.digest("hex")
}
const wanted = {
  program: digest("package.json", "program.lock"),
  all: digest("package.json", "test/package.json", "bench/package.json", "deno.lock"),
}
const installed = existsSync(stamp) ? JSON.parse(readFileSync(stamp, "utf8")) : {}

// An install for the program alone removes the packages of tests, which may be running: where they are, it renews all.
const program = process.argv[2] === "program" && !existsSync(join(root, "node_modules/vitest"))
const done = process.argv[2] === "program" ? installed.program === wanted.program : installed.all === wanted.all

if (!done) {
  process.stderr.write(`fetching the packages ${program ? "of the program" : "of all tasks"}, once for this checkout\n`)
  const began = performance.now()
  const args = ["install", "--quiet", "--frozen", ...(program ? ["--prod", "--lock=program.lock"] : [])]
  const { error, status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" })
  if (error !== undefined || status !== 0) {
    process.stderr.write(`the packages are not complete: after a change of a package.json type "deno task lock"\n`)
    process.exit(status ?? 1)
  }
  // Another task may read it at this moment.
  writeFileSync(`${stamp}.${process.pid}`, JSON.stringify(program ? { program: wanted.program } : wanted))
  renameSync(`${stamp}.${process.pid}`, stamp)
  process.stderr.write(`packages fetched in ${((performance.now() - began) / 1000).toFixed(0)} s\n`)
}
