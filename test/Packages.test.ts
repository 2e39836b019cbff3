/** What a first start fetches: the packages of the program, by a lock file of their own, and nothing of tests and benches. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { root } from "./support/Processes.ts"

interface Lock {
  readonly specifiers: Readonly<Record<string, string>>
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>
}

interface Manifest {
  readonly workspaces?: ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

const json = <A>(name: string): A => JSON.parse(readFileSync(join(root, name), "utf8"))
const manifest = json<Manifest>("package.json")
const members = manifest.workspaces!.map((name) => json<Manifest>(`${name}/package.json`))
const specifiers = (of: Readonly<Record<string, string>>) =>
  Object.entries(of).map(([name, version]) => `npm:${name}@${version}`).sort()

/** A checkout whose packages are `packages`, with the script that fetches them; `run` gives what it printed. */
const checkout = (packages: Readonly<Record<string, Manifest>>) => {
  const folder = mkdtempSync(join(tmpdir(), "packages-"))
  const deno = (...args: ReadonlyArray<string>) => {
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" })
    return { status, stderr: stderr.replaceAll(/ in \d+ s$/gm, "") }
  }
  for (const name of [".ci", "test", "bench"]) mkdirSync(join(folder, name))
  cpSync(join(root, ".ci/packages.mjs"), join(folder, ".ci/packages.mjs"))
  const write = (name: string, text: unknown) => writeFileSync(join(folder, name), JSON.stringify(text))
  write("deno.json", {
    nodeModulesDir: "manual",
    tasks: { lock: json<{ tasks: { lock: string } }>("deno.json").tasks.lock },
  })
  for (const [name, text] of Object.entries(packages)) write(name, text)
  assert.strictEqual(deno("task", "lock").status, 0)
  const has = (name: string) => existsSync(join(folder, "node_modules", name))
  return {
    folder,
    write,
    deno,
    has,
    run: (...args: ReadonlyArray<string>) => deno("run", "-A", ".ci/packages.mjs", ...args),
  }
}

describe("packages", () => {
  it("the program's lock file has the packages of the other one, for `dependencies` alone", () => {
    const [all, program] = [json<Lock>("deno.lock"), json<Lock>("program.lock")]
    assert.deepStrictEqual(Object.keys(program.specifiers).sort(), specifiers(manifest.dependencies!))
    for (const [name, { integrity }] of Object.entries(program.npm)) {
      assert.strictEqual(all.npm[name]?.integrity, integrity, name)
    }
    const others = [manifest, ...members].flatMap(({ devDependencies }) => specifiers(devDependencies!))
    assert.includeMembers(Object.keys(all.specifiers), others)
    assert.isAbove(others.length, 15)
    assert.deepStrictEqual(members.flatMap(({ dependencies }) => Object.keys(dependencies ?? {})), [])
  })

  it.skipIf(!("Deno" in globalThis))(
    "are fetched by the first task that needs them, and never taken from another",
    () => {
      const { folder, write, has, run } = checkout({
        "package.json": {
          workspaces: ["test", "bench"],
          dependencies: { canonicalize: manifest.dependencies!["canonicalize"]! },
        },
        "test/package.json": { devDependencies: {} },
        "bench/package.json": { devDependencies: { postgres: members[1]!.devDependencies!["postgres"]! } },
      })
      try {
        const program = "fetching the packages of the program, once for this checkout\npackages fetched\n"
        const all = "fetching the packages of all tasks, once for this checkout\npackages fetched\n"
        assert.deepStrictEqual(run("program"), { status: 0, stderr: program })
        assert.deepStrictEqual([has("canonicalize"), has("postgres")], [true, false])
        assert.deepStrictEqual(run("program"), { status: 0, stderr: "" })
        assert.deepStrictEqual(run(), { status: 0, stderr: all })
        assert.deepStrictEqual([has("canonicalize"), has("postgres")], [true, true])
        for (const args of [[], ["program"]]) assert.deepStrictEqual(run(...args), { status: 0, stderr: "" })

        // A checkout of a version before, whose packages were installed otherwise: those of running tests stay.
        rmSync(join(folder, "node_modules/.packages.json"))
        mkdirSync(join(folder, "node_modules/vitest"))
        assert.deepStrictEqual(run("program"), { status: 0, stderr: all })
        assert.isTrue(has("postgres"))

        const more = {
          postgres: members[1]!.devDependencies!["postgres"]!,
          "ipaddr.js": manifest.dependencies!["ipaddr.js"]!,
        }
        write("bench/package.json", { devDependencies: more })
        const { status, stderr } = run()
        assert.strictEqual(status, 1)
        assert.match(
          stderr,
          /lockfile is out of date[^]*not complete: after a change of a package\.json type "deno task lock"\n$/,
        )
      } finally {
        rmSync(folder, { recursive: true })
      }
    },
  )
})
