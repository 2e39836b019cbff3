/**
 * The sources of the version before, from the repository's history. It runs on the packages that are installed here: a
 * release whose packages differ installs its own beside them.
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { inject } from "vitest"
import { root } from "../../support/Processes.ts"

/** The last commit of the version before: its tag's, once there is one. */
export const previousCommit = "78e982aed22da0a6d1854e62dc018c3f95e171f5"

const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root, maxBuffer: 256 * 1_048_576 })

/** Whether this clone has the commit; a shallow one may not. */
export const hasPrevious = (): boolean => {
  try {
    git("cat-file", "-e", `${previousCommit}^{commit}`)
    return true
  } catch {
    return false
  }
}

/** The folder of the version before, of this run. */
export const previousVersion = Effect.sync(() => {
  const folders = join(inject("runFolder"), "previous")
  mkdirSync(folders, { recursive: true })
  const folder = mkdtempSync(join(folders, "v"))
  execFileSync("tar", ["-x", "-C", folder], { input: git("archive", "--format=tar", previousCommit) })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  return folder
})
