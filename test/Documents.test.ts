/** Documents of the tree lead somewhere: relative links, and paths that are named in backquotes. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
  .split("\n").filter((name) => name !== "" && name !== "CHANGELOG.md" && !name.startsWith("bench/results/"))

/** Targets of Markdown links to other files, without the part after #. */
const linksOf = (text: string) =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^([a-z]+:|#|\/)/.test(target))
    .map((target) => target.split("#", 1)[0]!)

/** Paths from the repository's root that stand in backquotes; a folder, or a file with one of our extensions. */
const pathsOf = (text: string) =>
  [...text.matchAll(/`((?:schemas|services|src|test|bench|sdk|migrations|examples|docs|deploy)\/[\w./-]*)`/g)]
    .map(([, path]) => path!)

describe("the documents", () => {
  it("are found", () => assert.include(documents, "docs/architecture.md"))

  for (const name of documents) {
    it(`${name} links to files that exist`, () => {
      const text = readFileSync(join(root, name), "utf8")
      const lost = linksOf(text).filter((target) => !existsSync(join(root, dirname(name), decodeURI(target))))
      assert.deepStrictEqual(lost, [])
    })

    it(`${name} names paths that exist`, () => {
      const text = readFileSync(join(root, name), "utf8")
      assert.deepStrictEqual(pathsOf(text).filter((path) => !existsSync(join(root, path))), [])
    })
  }
})
