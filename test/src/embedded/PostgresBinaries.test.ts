import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { copied } from "../../../src/embedded/PostgresBinaries.ts"

describe("a copy of PostgreSQL's programs", () => {
  it("has its symlinks within itself, whether the package's were made or not", () => {
    const folder = mkdtempSync(join(tmpdir(), "binaries-"))
    try {
      const native = join(folder, "package/native")
      mkdirSync(join(native, "lib"), { recursive: true })
      writeFileSync(join(native, "lib/libone.so.6.18"), "library")
      const source = "native/lib/libone.so.6.18"
      const links = ["native/lib/libone.so", "native/lib/libone.so.6"].map((target) => ({ source, target }))
      writeFileSync(join(native, "pg-symlinks.json"), JSON.stringify(links))
      symlinkSync("libone.so.6.18", join(native, "lib/libone.so"))

      copied(native, join(folder, "copy"))
      rmSync(join(folder, "package"), { recursive: true })
      for (const { target } of links) {
        assert.strictEqual(readlinkSync(join(folder, "copy", target)), "libone.so.6.18")
        assert.strictEqual(readFileSync(join(folder, "copy", target), "utf8"), "library")
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
