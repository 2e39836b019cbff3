/**
 * The import law (docs/architecture.md): schemas ← services/platform ← services/<domain> ← src ← test, bench. Checked
 * by reading the import lines of every file; and code that no file may contain.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"
import { longFunctions } from "./support/LongFunctions.ts"

const trees = ["schemas", "services", "src", "migrations", "test", "bench", "sdk", "examples", "console"]

/** Domains by floors, the highest first (docs/architecture.md). None imports another of its own floor. */
const floors: ReadonlyArray<ReadonlyArray<string>> = [
  ["recovery"],
  ["decisions", "operations"],
  ["projects", "signals"],
  ["access", "accounts", "console", "links", "transfers", "webhooks"],
  ["event-streams", "notifications", "people"],
  ["authentication", "directory", "lifecycle", "requests"],
  ["transparency"],
  ["platform"],
]

/** Rooms of the platform, the highest first. */
const platformRooms: ReadonlyArray<ReadonlyArray<string>> = [
  ["mail"],
  ["messaging"],
  ["observability"],
  ["security"],
  ["database"],
]

/** Basenames that stand more than once: each of them beside the module whose they are. */
const ordinary = new Set(["Listing.ts", "Records.ts", "Rows.ts", "main.ts"])

const filesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    // Built, or another test's for a moment (test/Snippets.test.ts).
    .filter(({ parentPath }) => basename(parentPath) !== "dist" && !/\/\./.test(parentPath))
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

  it("an import between domains goes down a floor", () => {
    const folders = readdirSync("services").sort()
    assert.deepStrictEqual(floors.flat().sort(), folders, "every folder of services stands on one floor")
    const floorOf = (path: string) => floors.findIndex((domains) => domains.includes(domainOf(path) ?? ""))
    assert.deepStrictEqual(
      breaches(under("services"), (to, from) => {
        const above = isFile(to) && to.startsWith("services/") && floorOf(to) <= floorOf(from)
        return above && domainOf(to) !== domainOf(from)
      }),
      [],
    )
  })

  it("a room of the platform imports rooms below it only", () => {
    const roomOf = (path: string) => /^services\/platform\/([a-z]+)\//.exec(path)?.[1]
    const floorOf = (path: string) => platformRooms.findIndex((rooms) => rooms.includes(roomOf(path) ?? ""))
    const inRooms = under("services/platform").filter(({ path }) => roomOf(path) !== undefined)
    assert.deepStrictEqual(inRooms.filter(({ path }) => floorOf(path) === -1).map(({ path }) => path), [])
    assert.deepStrictEqual(
      breaches(inRooms, (to, from) => {
        const room = roomOf(to)
        return room !== undefined && room !== roomOf(from) && floorOf(to) <= floorOf(from)
      }),
      // It asks the broker, too, whether it is there.
      ["services/platform/observability/Readiness.ts -> services/platform/messaging/Bus.ts"],
    )
    // What stands beside the rooms is used by all of them.
    const beside = under("services/platform").filter(({ path }) => roomOf(path) === undefined)
    assert.deepStrictEqual(breaches(beside, (to) => roomOf(to) !== undefined), [])
  })

  it("no circle of files, types included", () => {
    const files = new Map(sources.map(({ imports, path }) => [path, imports]))
    const done = new Set<string>()
    const circles: Array<string> = []
    const walk = (path: string, way: ReadonlyArray<string>): void => {
      const at = way.indexOf(path)
      if (at !== -1) return void circles.push([...way.slice(at), path].join(" -> "))
      if (done.has(path)) return
      for (const to of files.get(path) ?? []) if (files.has(to)) walk(to, [...way, path])
      done.add(path)
    }
    for (const path of files.keys()) walk(path, [])
    assert.deepStrictEqual(circles, [])
  })

  it("file names begin with a capital", () => {
    // Migrations are named by their number and their title; the others by what starts or looks for them.
    const allowed = /^(\d{4}_\w+|main|pg\.d|oidc-provider\.d)\.ts$/
    const small = sources.map(({ path }) => path).filter((path) => {
      const name = basename(path)
      return !/^[A-Z][A-Za-z0-9]*(\.test)?\.tsx?$/.test(name) && !allowed.test(name)
    })
    assert.deepStrictEqual(small, [])
  })

  it("a file's name stands once in the tree", () => {
    const named = Map.groupBy(sources.map(({ path }) => path), (path) => basename(path))
    const twice = [...named].filter(([name, paths]) => paths.length > 1 && !ordinary.has(name))
    assert.deepStrictEqual(twice.map(([, paths]) => paths), [])
    const once = [...ordinary].filter((name) => (named.get(name)?.length ?? 0) < 2)
    assert.deepStrictEqual(once, [], "an exception that is needed no more")
  })

  it("a function of the product has at most 70 lines", () => {
    const found = product.concat(under("sdk")).filter(({ path }) => !path.startsWith("migrations/"))
      .flatMap(({ path, text }) => longFunctions(text).map((name) => `${path} ${name}`))
    assert.deepStrictEqual([...new Set(found)].sort(), [])
  })

  it("no object literal is spread into another only to save lines", () => {
    assert.deepStrictEqual(saying(sources, /\.\.\.\{/, ["test/Architecture.test.ts"]), [])
  })

  it("src is imported by src, test and bench only; test and bench by no product code", () => {
    assert.deepStrictEqual(breaches(product, (to, from) => to.startsWith("src/") && !from.startsWith("src/")), [])
    assert.deepStrictEqual(breaches(product, (to) => /^(test|bench)\//.test(to)), [])
  })

  it("the consumer's kit imports only itself, and examples only the kit and the broker's client", () => {
    const outside = (to: string) => !to.startsWith("sdk/") && !to.startsWith("node:")
    const broker = (to: string) => to.startsWith("@nats-io/")
    assert.deepStrictEqual(breaches(under("sdk"), outside), [])
    assert.deepStrictEqual(
      breaches(under("examples"), (to, from) => outside(to) && !broker(to) && !to.startsWith(dirname(from))),
      [],
    )
    // Commands of an account's user call the API as its users do.
    const calling = (to: string, from: string) => to === "sdk/client/Client.ts" && from.startsWith("src/cli/account/")
    // A log and a pack must not be verified by the code that writes them.
    const verifying = (_: string, from: string) => /^src\/cli\/(LogCommand|account\/EvidenceCommand)\.ts$/.test(from)
    assert.deepStrictEqual(
      breaches(product, (to, from) => /^(sdk|examples)\//.test(to) && !calling(to, from) && !verifying(to, from)),
      [],
    )
    assert.isAbove(under("sdk").length, 8)
  })

  it("the console imports itself, the client, its few packages, and types of the contract; no room imports it", () => {
    const own = /^(console\/|sdk\/client\/|preact(\/hooks)?$|@preact\/signals$|@simplewebauthn\/browser$|uqr$)/
    const contract = "console/contract/EndpointTypes.ts -> schemas/api/Api.ts"
    assert.deepStrictEqual(breaches(under("console"), (to) => !own.test(to)), [contract])
    const types = sources.find(({ path }) => path === "console/contract/EndpointTypes.ts")!
    assert.deepStrictEqual(types.text.match(/^import(?! type).*/gm), null)
    const others = sources.filter(({ path }) => !/^(console|test)\//.test(path))
    assert.deepStrictEqual(breaches(others, (to) => to.startsWith("console/")), [])
    // Markup that is made of text is script of others: a browser refuses it under `trusted-types 'none'`.
    assert.deepStrictEqual(saying(under("console"), /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML/), [])
    assert.isAbove(under("console").length, 15)
  })

  it("the program imports the packages that its start fetches; tests and benches also those of their own manifest", () => {
    const manifest = (name: string) => JSON.parse(readFileSync(join(name, "package.json"), "utf8"))
    const { dependencies, devDependencies } = manifest(".")
    const named = (of: ReadonlyArray<object>) => new Set(of.flatMap((one) => Object.keys(one)))
    const strange = (allowed: ReadonlySet<string>) => (to: string) => {
      const [name] = /^(@[^/]+\/)?[^/]+/.exec(to)!
      return !isFile(to) && !/^(node|npm|data):/.test(to) && !allowed.has(name)
    }
    assert.deepStrictEqual(breaches([...product, ...under("console")], strange(named([dependencies]))), [])
    // Their texts have import lines of other programs.
    const quoting = ["test/Architecture.test.ts", "test/Snippets.test.ts"]
    for (const tree of ["test", "bench"]) {
      const own = named([dependencies, devDependencies, manifest(tree).devDependencies])
      assert.deepStrictEqual(
        breaches(under(tree).filter(({ path }) => !quoting.includes(path)), strange(own)),
        [],
        tree,
      )
    }
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

  it("no module loads undici's index: UndiciParts has the parts that are used", () => {
    const whole = product.filter(({ text }) => /^import (?!type).*"undici"/m.test(text))
    assert.deepStrictEqual(whole.map(({ path }) => path), [])
  })

  it("advisory locks are taken by their names", () => {
    const takers = saying(product, /\bpg_(try_)?advisory_/).filter((path) => !path.startsWith("migrations/"))
    assert.deepStrictEqual(takers, ["services/platform/database/AdvisoryLocks.ts"])
  })

  it("commands are spelled in one place, so that a reader of a hint can type them", () => {
    const spelled = /deno(@[\d.]+)? task|["'`]cli [a-z]/
    // The console's builder runs in the image's first stage, without the other sources; a document names the command.
    const building = ["services/platform/CommandSpelling.ts", "src/http/console/ConsoleBuild.ts"]
    assert.deepStrictEqual(saying(product, spelled, [...building, "src/http/docs/AsyncApiDocument.ts"]), [])
    assert.deepStrictEqual(saying(product.filter(({ path }) => building.includes(path)), spelled), building)
  })

  it("no `as any`, no barrel, no import without an extension", () => {
    assert.deepStrictEqual(saying(sources.filter(({ path }) => path !== "test/Architecture.test.ts"), /\bas any\b/), [])
    assert.deepStrictEqual(sources.filter(({ path }) => /\/index\.tsx?$/.test(path)).map(({ path }) => path), [])
    assert.deepStrictEqual(breaches(sources, (to) => isFile(to) && !/\.(tsx?|json|css)$/.test(to)), [])
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
