/**
 * The files of Docker Compose against the schema of the Compose Specification, by dclint: there is no engine here to
 * read them. npx fetches it in a pinned version; where it cannot, the test is skipped, and says so.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const linter = "dclint@3.1.0"

/** Style, order of members, ports that nginx opens to the world on purpose, an image that the file builds, a file that is an addition. */
const off = [
  "no-build-and-image",
  "no-quotes-in-volumes",
  "no-unbound-port-interfaces",
  "require-project-name-field",
  "require-quotes-in-ports",
  "service-dependencies-alphabetical-order",
  "service-image-require-explicit-tag",
  "service-keys-order",
  "service-ports-alphabetical-order",
  "services-alphabetical-order",
  "top-level-properties-order",
]

interface Finding {
  readonly rule: string
  readonly message: string
}

const run = (args: ReadonlyArray<string>, cwd: string) =>
  spawnSync("npx", ["-y", linter, ...args], { cwd, encoding: "utf8", timeout: 240_000 })

const reachable = (() => {
  const found = run(["--version"], tmpdir()).status === 0
  if (!found) console.warn(`SKIPPED: npx cannot fetch ${linter}`)
  return found
})()

const findings = (text: string): ReadonlyArray<Finding> => {
  const folder = mkdtempSync(join(tmpdir(), "compose-"))
  try {
    writeFileSync(join(folder, "compose.yaml"), text)
    const rules = Object.fromEntries(off.map((rule) => [rule, 0]))
    writeFileSync(join(folder, "rules.json"), JSON.stringify({ rules }))
    const { stderr, stdout } = run(["-c", "rules.json", "-f", "json", "compose.yaml"], folder)
    const files: unknown = JSON.parse(stdout === "" ? "null" : stdout)
    assert.isArray(files, stderr)
    return (files as ReadonlyArray<{ readonly messages: ReadonlyArray<Finding> }>)
      .flatMap(({ messages }) => messages.map(({ message, rule }) => ({ message, rule })))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe.skipIf(!reachable)("the files of Docker Compose", () => {
  for (const name of ["compose.yaml", "compose.try.yaml", "compose.observe.yaml"]) {
    it(`${name} is what the specification says`, () => {
      const text = readFileSync(new URL(`../../deploy/${name}`, import.meta.url), "utf8")
      assert.deepStrictEqual(findings(text), [])
      // A member that the specification does not know is found.
      const misspelt = text.replace(/^( {2,4})mem_limit:/m, "$1memory_limit:")
        .replace(/^( {4})healthcheck:/m, "$1health_check:")
      assert.notStrictEqual(misspelt, text)
      assert.include(findings(misspelt).map(({ rule }) => rule), "invalid-schema")
    })
  }
})
