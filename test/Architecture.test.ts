/**
 * The import law (docs/architecture.md): schemas ← services/platform ← services/<domain> ← src ← test, bench. Checked
 * by reading the import lines of every file; and code that no file may contain.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const trees = ["schemas", "services", "src", "migrations", "test", "bench", "sdk", "examples"]

const filesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => normalize(join(entry.parentPath, entry.name)))

interface Source {
  readonly path: string
  readonly text: string
  /** Imported files as paths from the root, packages as they are named. */
  readonly imports: ReadonlyArray<string>
}

const imported = /(?:^|[\s;}])(?:import|export)\s(?:[^"';]*?\sfrom\s)?\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/g

const sources: ReadonlyArray<Source> = trees.flatMap(filesOf).map((path) => {
  const text = readFileSync(path, "utf8")
  const imports = [...text.matchAll(imported)].map(([, named, dynamic]) => {
    const to = (named ?? dynamic)!
    return to.startsWith(".") ? normalize(join(dirname(path), to)) : to
  })
  return { path, text, imports }
})

const under = (tree: string) => sources.filter(({ path }) => path.startsWith(`${tree}/`))
const isFile = (to: string) => trees.some((tree) => to.startsWith(`${tree}/`))
const domainOf = (path: string) => /^services\/([^/]+)\//.exec(path)?.[1]

/** Every import that `broken` says breaks a law, as `file -> import`. */
const breaches = (of: ReadonlyArray<Source>, broken: (to: string, from: string) => boolean) =>
  of.flatMap(({ imports, path }) => imports.filter((to) => broken(to, path)).map((to) => `${path} -> ${to}`))

/** The text without comments, which may hold words that code may not. */
const codeOf = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1")

const saying = (of: ReadonlyArray<Source>, pattern: RegExp, excepted: ReadonlyArray<string> = []) =>
  of.filter(({ path, text }) => !excepted.includes(path) && pattern.test(codeOf(text))).map(({ path }) => path)

const product = trees.slice(0, 4).flatMap(under)

describe("Architecture", () => {
  it("import lines of every shape are read", () => {
    const text =
      `import a from "a"\nimport { b,\n  c } from "b"\nexport { d } from "d"\nimport "e"\nimport type { f } from "f"
      const g = import("g")\nexport * as h from "h"\nconst from = "not"`
    assert.deepStrictEqual([...text.matchAll(imported)].map(([, one, two]) => one ?? two), [..."abdefgh"])
    assert.isAbove(sources.length, 150)
    assert.isAbove(sources.flatMap(({ imports }) => imports).length, 1_000)
  })

  it("schemas import effect and each other", () => {
    const allowed = new Set(["schemas/bus/Subject.ts -> node:crypto"])
    const found = breaches(under("schemas"), (to) => !/^effect(\/|$)/.test(to) && !to.startsWith("schemas/"))
    assert.deepStrictEqual(found.filter((breach) => !allowed.has(breach)), [])
  })

  it("a start loads few packages before its servers run: the others are loaded during their start", () => {
    const loaded = /(?:^|\n)(?:import|export)\s(?!type\s)(?:[^"';]*?\sfrom\s)?\s*"([^"]+)"/g
    const found = new Set(["src/main.ts"])
    for (const path of found) {
      const text = sources.find((source) => source.path === path)?.text ?? ""
      for (const [, to] of text.matchAll(loaded)) {
        found.add(to!.startsWith(".") ? normalize(join(dirname(path), to!)) : to!)
      }
    }
    const packages = [...found].filter((to) => !isFile(to) && !to.startsWith("node:"))
    const small = ["@effect/platform-node/NodeRuntime", "effect", "effect/sql/SqlError", "ipaddr.js"]
    assert.deepStrictEqual(packages.sort(), small)
    assert.include([...found], "src/embedded/PostgresData.ts")
  })

  it("migrations import effect only", () => {
    assert.deepStrictEqual(breaches(under("migrations"), (to) => !/^effect(\/|$)/.test(to)), [])
  })

  it("the platform imports schemas and itself, and no domain", () => {
    assert.deepStrictEqual(
      breaches(under("services/platform"), (to) => isFile(to) && !/^(schemas|services\/platform)\//.test(to)),
      [],
    )
  })

  it("services import schemas and services, and of another domain its root modules only", () => {
    assert.deepStrictEqual(breaches(under("services"), (to) => isFile(to) && !/^(schemas|services)\//.test(to)), [])
    assert.deepStrictEqual(
      breaches(under("services"), (to, from) => {
        const domain = domainOf(to)
        if (domain === undefined || domain === "platform" || domain === domainOf(from)) return false
        return to.split("/").length > 3
      }),
      [],
    )
  })

  it("src is imported by src, test and bench only; test and bench by no product code", () => {
    assert.deepStrictEqual(breaches(product, (to, from) => to.startsWith("src/") && !from.startsWith("src/")), [])
    assert.deepStrictEqual(breaches(product, (to) => /^(test|bench)\//.test(to)), [])
  })

  it("the consumer's kit imports only itself, and examples only the kit", () => {
    const outside = (to: string) => !to.startsWith("sdk/") && !to.startsWith("node:")
    assert.deepStrictEqual(breaches(under("sdk"), outside), [])
    assert.deepStrictEqual(breaches(under("examples"), (to, from) => outside(to) && !to.startsWith(dirname(from))), [])
    assert.deepStrictEqual(breaches(product, (to) => /^(sdk|examples)\//.test(to)), [])
    assert.isAbove(under("sdk").length, 8)
  })

  it("requests to the outside go through platform/Outbound", () => {
    const inside = /^services\/platform\/Outbound(\.ts$|\/)/
    const outside = product.filter(({ path }) => !inside.test(path))
    assert.deepStrictEqual(breaches(outside, (to) => /^undici(\/|$)/.test(to)), [])
    assert.deepStrictEqual(saying(outside, /(?<![.\w])(globalThis\.)?fetch\(/), [])
    assert.deepStrictEqual(breaches(outside, (to) => to === "effect/http/FetchHttpClient"), [])
  })

  it("a package that few processes use is loaded on first use", () => {
    const late = product.filter(({ text }) => /^import (?!type).*"@simplewebauthn\//m.test(text))
    assert.deepStrictEqual(late.map(({ path }) => path), [])
    assert.isNotEmpty(breaches(product, (to) => to === "@simplewebauthn/server"))
  })

  it("undici's index is loaded by nobody: what is used of it is in UndiciParts", () => {
    const whole = product.filter(({ text }) => /^import (?!type).*"undici"/m.test(text))
    assert.deepStrictEqual(whole.map(({ path }) => path), [])
  })

  it("advisory locks are taken by their names", () => {
    const takers = saying(product, /\bpg_(try_)?advisory_/).filter((path) => !path.startsWith("migrations/"))
    assert.deepStrictEqual(takers, ["services/platform/database/AdvisoryLocks.ts"])
  })

  it("no `as any`, no barrel, no import without an extension", () => {
    assert.deepStrictEqual(saying(sources.filter(({ path }) => path !== "test/Architecture.test.ts"), /\bas any\b/), [])
    assert.deepStrictEqual(sources.filter(({ path }) => /\/index\.tsx?$/.test(path)).map(({ path }) => path), [])
    assert.deepStrictEqual(breaches(sources, (to) => isFile(to) && !/\.(tsx?|json)$/.test(to)), [])
    const vague = /\/(utils?|common|helpers?)(\/|\.ts$)/i
    assert.deepStrictEqual(sources.filter(({ path }) => vague.test(path)).map(({ path }) => path), [])
  })

  it("an entry that reaches Effect hides async_hooks from it first", () => {
    const hide = "src/process/HideAsyncHooks.ts"
    const files = new Map(sources.map((source) => [source.path, source]))
    const reaches = (path: string, seen: Set<string>): boolean => {
      if (seen.has(path)) return false
      seen.add(path)
      const imports = files.get(path)?.imports ?? []
      return imports.some((to) => /^(@effect\/|effect(\/|$))/.test(to) || reaches(to, seen))
    }
    const isEntry = ({ path, text }: Source) =>
      /^bench\/programs\/|\/fixtures\//.test(path) || path.endsWith("GlobalSetup.ts") || /\brunMain\(/.test(text)
    const entries = sources.filter((source) => isEntry(source) && reaches(source.path, new Set()))
    const late = entries.filter(({ imports }) => imports[0] !== hide).map(({ path }) => path)
    // The test of the hiding itself loads Effect both ways.
    assert.deepStrictEqual(late.filter((path) => path !== "test/src/process/fixtures/TurnOrder.ts"), [])
    assert.isAbove(entries.length, 10)
    for (const config of ["vitest.config.ts", "vitest.long.config.ts"]) {
      assert.include(files.get(config)?.text ?? readFileSync(config, "utf8"), `setupFiles: ["${hide}"]`)
    }
  })

  it("time comes from Effect's Clock and goes into SQL as a parameter", () => {
    assert.deepStrictEqual(saying(product, /\bDate\.now\(|\bnew Date\(\s*\)/), [])
    // One measures how far the database's clock is from this process's: that is what the others then go by. The other
    // says how long evidence is kept, which no program's clock may shorten.
    const measuring = ["services/platform/database/DatabaseClock.ts", "migrations/0019_retention.ts"]
    const statements = product.map((source) => ({
      ...source,
      text: [...codeOf(source.text).matchAll(/`[^`]*`/g)].join("\n").replace(/\$\{[^}]*\}/g, ""),
    }))
    const asking = /\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\(\)|\bcurrent_(timestamp|date)\b/i
    assert.deepStrictEqual(saying(statements, asking, measuring), [])
    assert.deepStrictEqual(saying(statements, asking), measuring, "an exception that is no longer needed")
  })

  it("no regular expression can read one text in many ways, or look for its end from every place", () => {
    const literal = /(?<=[=(,:?&|!>]\s*|return )\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*/g
    const all = product.concat(under("sdk")).flatMap(({ path, text }) =>
      [...codeOf(text).matchAll(literal)].map(([found]) => `${path} ${found}`)
    )
    assert.isAbove(all.length, 120)
    // `(a+(, )?)*`: a part that may be left out, at the end of a group that is repeated.
    const ambiguous = /[*?]\)[*+](?![\]])/
    // `a+$` without a beginning: quadratic in a run of a that is not at the end.
    const unanchored = /^\S+ \/(?:\\?[^\s^\\]|\[(?:\\.|[^\]\\])*\])[+*]\$\//
    assert.deepStrictEqual(all.filter((one) => ambiguous.test(one) || unanchored.test(one)), [])
  })
})
