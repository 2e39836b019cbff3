/**
 * The test files that need neither PostgreSQL, nor a broker, nor another program: nothing that they import, directly or
 * not, uses one of the run's servers (`inject`), and no test listens on a port or starts a process. Found by reading import lines, so a new
 * test gets into the right suite by itself.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

/** Value imports only: a type import brings no code along. */
const imported =
  /(?:^|[\s;}])(?:import|export)\s(?!type\b)(?:[^"';]*?\sfrom\s)?\s*"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)/g

const starters = new Set(["src/embedded/EmbeddedPostgres.ts", "src/embedded/EmbeddedNats.ts"])

const needsMore = (path: string, text: string) =>
  starters.has(path) || path.startsWith("test/") && /\binject\(|"node:child_process"|\.listen\(/.test(text)

interface Module {
  readonly needy: boolean
  readonly imports: ReadonlyArray<string>
}

/** Each file is read once: read for every test that reaches it, the tree took longer than the tests. */
const modules = new Map<string, Module>()

const moduleOf = (path: string): Module => {
  const known = modules.get(path)
  if (known !== undefined) return known
  const text = existsSync(path) ? readFileSync(path, "utf8") : ""
  const imports = [...text.matchAll(imported)].map(([, fixed, late]) =>
    normalize(join(dirname(path), (fixed ?? late)!))
  )
  const found = { needy: needsMore(path, text), imports }
  modules.set(path, found)
  return found
}

const needsServers = (test: string): boolean => {
  const reached = new Set([test])
  for (const path of reached) {
    const { imports, needy } = moduleOf(path)
    if (needy) return true
    for (const to of imports) reached.add(to)
  }
  return false
}

/** Paths from the tree's root. */
export const withoutServers = (): ReadonlyArray<string> =>
  globSync("test/**/*.test.ts").map(normalize).filter((path) =>
    !/^test\/(e2e|long|node_modules)\//.test(path) && !needsServers(path)
  )
