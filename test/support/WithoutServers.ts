/**
 * The test files that need neither PostgreSQL, nor a broker, nor another program: nothing that they import, directly or
 * not, uses one of the run's servers (`inject`), and no test starts a process. Found by reading import lines, so a new
 * test gets into the right suite by itself.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

/** Value imports only: a type import brings no code along. */
const imported =
  /(?:^|[\s;}])(?:import|export)\s(?!type\b)(?:[^"';]*?\sfrom\s)?\s*"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)/g

const starters = new Set(["src/embedded/EmbeddedPostgres.ts", "src/embedded/EmbeddedNats.ts"])

const needsMore = (path: string, text: string) =>
  starters.has(path) || path.startsWith("test/") && /\binject\(|"node:child_process"/.test(text)

const reached = (path: string, seen: Map<string, string>): ReadonlyMap<string, string> => {
  if (seen.has(path) || !existsSync(path)) return seen
  const text = readFileSync(path, "utf8")
  seen.set(path, text)
  for (const [, fixed, late] of text.matchAll(imported)) reached(normalize(join(dirname(path), (fixed ?? late)!)), seen)
  return seen
}

/** Paths from the tree's root. */
export const withoutServers = (): ReadonlyArray<string> =>
  globSync("test/**/*.test.ts").map(normalize).filter((path) =>
    !/^test\/(e2e|long|node_modules)\//.test(path) &&
    ![...reached(path, new Map())].some(([file, text]) => needsMore(file, text))
  )
