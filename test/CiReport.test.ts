/** The last lines of `.ci/run`: a test that failed and then passed must never be hidden. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { root } from "./support/Processes.ts"

type Tests = Readonly<Record<string, "passed" | "failed">>

const file = (name: string, millis: number, tests: Tests, status?: "failed") => ({
  name: join(root, "test", name),
  startTime: 1_000,
  endTime: 1_000 + millis,
  status: status ?? (Object.values(tests).includes("failed") ? "failed" : "passed"),
  assertionResults: Object.entries(tests).map(([fullName, status]) => ({ fullName, status })),
})

type File = ReturnType<typeof file>

/** Reports on attempts, each the files that it ran, by `<task>.<attempt>`. */
const report = async (
  attempts: Readonly<Record<string, ReadonlyArray<File>>>,
  status = "0",
  /** Attempts that ended with an error outside of every file. */
  outside: ReadonlyArray<string> = [],
) => {
  const folder = mkdtempSync(join(tmpdir(), "bailiwick-report-"))
  try {
    for (const [name, testResults] of Object.entries(attempts)) {
      writeFileSync(join(folder, `${name}.json`), JSON.stringify({ testResults }))
      const passed = testResults.every(({ status }) => status === "passed") && !outside.includes(name)
      writeFileSync(join(folder, `${name}.exit`), passed ? "0\n" : "1\n")
    }
    const runtime = "Deno" in globalThis ? ["run", "-A"] : []
    const ran = promisify(execFile)(process.execPath, [...runtime, ".ci/report.mjs", folder, status], { cwd: root })
    const { code, stdout } = await ran.then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }) => ({ code, stdout }),
    )
    return { code, lines: String(stdout).trimEnd().split("\n") }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("the report of a run", () => {
  it("names each test that failed and then passed as flaky", async () => {
    const { code, lines } = await report({
      "test.0": [
        file("A.test.ts", 9_000, { "a one": "failed", "a two": "passed" }),
        file("B.test.ts", 50, { b: "passed" }),
      ],
      "test.1": [file("A.test.ts", 400, { "a one": "passed", "a two": "failed" })],
      "test.2": [file("A.test.ts", 500, { "a one": "passed", "a two": "passed" })],
      "test:long.0": [file("long/C.test.ts", 70_000, {}, "failed")],
      "test:long.1": [file("long/C.test.ts", 60_000, { c: "passed" })],
    })
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(lines, [
      "test/long/C.test.ts took 70.0 s",
      "test/A.test.ts took 9.0 s",
      "test/B.test.ts took 0.1 s",
      "flaky: test/A.test.ts a one",
      "flaky: test/A.test.ts a two",
      "flaky: test/long/C.test.ts (outside of its tests)",
      "4 passed, 0 failed",
    ])
  })

  it("names a test that failed in every attempt as failed", async () => {
    const attempt = [file("A.test.ts", 10, { one: "failed", two: "passed" })]
    const { code, lines } = await report({ "test.0": attempt, "test.1": attempt }, "1")
    assert.strictEqual(code, 1)
    assert.deepStrictEqual(lines.slice(1), ["failed: test/A.test.ts one", "1 passed, 1 failed"])
  })

  it("names an error that belongs to no file, and counts one that stays", async () => {
    const attempt = [file("A.test.ts", 10, { one: "passed" })]
    const once = await report({ "test.0": attempt, "test.1": attempt }, "0", ["test.0"])
    assert.deepStrictEqual(once.lines.slice(1), ["flaky: test (an error outside of its files)", "1 passed, 0 failed"])
    const always = await report({ "test.0": attempt, "test.1": attempt }, "1", ["test.0", "test.1"])
    assert.deepStrictEqual([always.code, ...always.lines.slice(1)], [1, "1 passed, 1 failed"])
    assert.deepStrictEqual((await report({})).lines, ["0 passed, 1 failed"])
  })
})
