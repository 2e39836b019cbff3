/**
 * References of the tree lead somewhere: links and anchors of documents, paths in backquotes, and documents that
 * comments of the code name; no comment cites a paper that is not in the tree.
 */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

const code = ["schemas", "services", "src", "migrations", "console", "test", "bench", "sdk", "examples"]
const trees = [...code, "deploy", "docs", ".ci"]

/** Files of the tree and of its root whose names match; paths from the root. */
const filesOf = (ending: RegExp): ReadonlyArray<string> => [
  ...readdirSync(root).filter((name) => ending.test(name)),
  ...trees.flatMap((tree) =>
    readdirSync(join(root, tree), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && ending.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((path) => !path.includes("node_modules/"))
  ),
]

const read = (path: string) => readFileSync(join(root, path), "utf8")

const documents = filesOf(/\.md$/).filter((name) => name !== "CHANGELOG.md" && !name.startsWith("bench/results/"))

/** Targets of Markdown links within the tree. */
const linksOf = (text: string) =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!).filter((target) => !/^([a-z]+:|\/)/.test(target))

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (text: string) =>
  [...text.replace(/```[\s\S]*?```/g, "").matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")
  )

const leads = (from: string, target: string) => {
  const [file, anchor] = target.split("#", 2)
  const path = file === "" ? from : normalize(join(dirname(from), decodeURI(file!)))
  if (!existsSync(join(root, path))) return false
  return anchor === undefined || !path.endsWith(".md") || anchorsOf(read(path)).includes(anchor)
}

/** Paths from the repository's root that stand in backquotes; a folder, or a file with one of our extensions. */
const pathsOf = (text: string) =>
  [...text.matchAll(/`((?:schemas|services|src|test|bench|sdk|migrations|examples|docs|deploy)\/[\w./-]*)`/g)]
    .map(([, path]) => path!)

/** Comments, of TypeScript and of what begins them with a number sign. */
const commentsOf = (text: string) =>
  [...text.matchAll(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/.*$|^\s*#.*$|--.*$/gm)].map(([comment]) => comment).join("\n")

const named = /(?<![\w/.-])((?:[\w.-]+\/)*[\w-]+\.md)\b/g

/** A chapter of a paper by its number, or in brackets by a name in capitals; standards have names with numbers. */
const cited =
  /\bspecification \d+|\b[A-Z]{4,}-[a-z]+ \d|\((?!HTTP|JSON|SIG)[A-Z]{5,}(?:-[a-z]+)?(?:, [A-Z][\w ]+|, [a-z ]+|)\)/g

const standsIn = (from: string, name: string) =>
  existsSync(join(root, name)) || existsSync(join(root, dirname(from), name))

describe("the documents", () => {
  it("are found", () => assert.include(documents, "docs/architecture.md"))

  for (const name of documents) {
    it(`${name} links to what exists`, () => {
      assert.deepStrictEqual(linksOf(read(name)).filter((target) => !leads(name, target)), [])
    })

    it(`${name} names paths that exist`, () => {
      assert.deepStrictEqual(pathsOf(read(name)).filter((path) => !existsSync(join(root, path))), [])
    })
  }
})

describe("README's pictures", () => {
  const pictures = linksOf(read("README.md")).filter((target) => target.endsWith(".png"))

  it("show a delivery, a review and the operator's first page, in at most 150 kB each", () => {
    assert.lengthOf(pictures, 3)
    for (const picture of pictures) assert.isAtMost(statSync(join(root, picture)).size, 150_000, picture)
  })
})

describe("CHANGELOG.md", () => {
  const changes = read("CHANGELOG.md")

  it("begins with what is not released, then this version and its day", () => {
    const { version } = JSON.parse(read("package.json"))
    const [, released] = [...changes.matchAll(/^## (.+)$/gm)].map(([, title]) => title!)
    assert.match(changes, /^# Changelog\n[^#]*## Unreleased\n/)
    assert.strictEqual(released?.replace(/\d{4}-\d\d-\d\d$/, "day"), `${version} - day`)
  })

  it("names every change as added, changed, deprecated, removed, fixed or security, once", () => {
    const kinds = new Set(["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"])
    for (const part of changes.split(/^## /m).slice(1)) {
      const titles = [...part.matchAll(/^### (.+)$/gm)].map(([, title]) => title!)
      assert.deepStrictEqual(titles.filter((title) => !kinds.has(title)), [])
      assert.lengthOf(new Set(titles), titles.length)
    }
    const lines = [...changes.matchAll(/^- .+$/gm)].map(([line]) => line)
    assert.lengthOf(new Set(lines), lines.length)
    assert.deepStrictEqual(linksOf(changes).filter((target) => !leads("CHANGELOG.md", target)), [])
  })
})

describe("comments of the code", () => {
  const code = filesOf(/\.(ts|mjs|sh|ya?ml|conf)$|^Dockerfile$/).map((path) => ({ path, text: commentsOf(read(path)) }))

  it("are found", () => {
    assert.isAbove(code.length, 500)
    assert.isAbove(code.filter(({ text }) => text.includes("docs/")).length, 30)
  })

  it("name documents that stand in the tree", () => {
    const lost = code.flatMap(({ path, text }) =>
      [...text.matchAll(named)].map(([, name]) => name!).filter((name) => !standsIn(path, name))
        .map((name) => `${path} names ${name}`)
    )
    assert.deepStrictEqual(lost, [])
  })

  it("cite no paper that does not", () => {
    const found = code.flatMap(({ path, text }) => [...text.matchAll(cited)].map(([cite]) => `${path} cites ${cite}`))
    assert.deepStrictEqual(found, [])
  })
})
