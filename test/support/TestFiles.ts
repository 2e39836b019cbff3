/**
 * Which suite a test file belongs to, found by reading import lines, so that a new test gets into the right one by itself:
 * `test:unit` runs the files that need no server, `test` these and the files that need servers, `test:long` the rest.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

/** Value imports only: a type import brings no code along. */
const imported =
  /(?:^|[\s;}])(?:import|export)\s(?!type\b)(?:[^"';]*?\sfrom\s)?\s*"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)/g

const starters = new Set(["src/embedded/EmbeddedPostgres.ts", "src/embedded/EmbeddedNats.ts"])

/** Whether a module uses one of the run's servers (`inject`), listens on a port, or starts a process. */
const needsMore = (path: string, text: string) =>
  starters.has(path) || path.startsWith("test/") && /\binject\(|"node:child_process"|\.listen\(/.test(text)

const programs = new Set(["test/support/Processes.ts", "test/support/Browser.ts"])

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

/** Whether the test imports, directly or not, a module that fits. */
const reaches = (test: string, fits: (path: string, module: Module) => boolean): boolean => {
  const reached = new Set([test])
  for (const path of reached) {
    const module = moduleOf(path)
    if (fits(path, module)) return true
    for (const to of module.imports) reached.add(to)
  }
  return false
}

const tests = () =>
  globSync("test/**/*.test.ts").map(normalize).filter((path) => !/^test\/(long|node_modules)\//.test(path))

/** The files that need neither PostgreSQL, nor a broker, nor another program. Paths from the tree's root. */
export const withoutServers = (): ReadonlyArray<string> =>
  tests().filter((path) => !path.startsWith("test/e2e/") && !reaches(path, (_, { needy }) => needy))

/** Those of whole programs that `test` runs as well: a start, the two APIs and the bus, as a stranger sees them. */
const doors = new Set(
  ["Start", "Curl", "Events", "Channels", "Subscriber", "WrongAddresses"].map((name) => `test/e2e/${name}.test.ts`),
)

/** Every pair of commands in every order, a hundred thousand generated answers, a database that answers late. */
const exhaustive = /Interleavings\.test\.ts$|\/(Differential|SlowDatabase)\.test\.ts$/

/** The files in the rooms of whole programs, of commands and of the console that start a program or a browser. */
const startsProgram = (path: string) =>
  /^test\/(e2e|src\/cli|src\/http\/console)\//.test(path) && !doors.has(path) &&
  reaches(path, (reached) => programs.has(reached))

/**
 * The files outside of test/long/ that `test` leaves to `test:long`: a tenth of the tests, which took half of the suite's
 * time. Paths from the tree's root.
 */
export const leftToLong = (): ReadonlyArray<string> =>
  tests().filter((path) => exhaustive.test(path) || startsProgram(path))

/** The files with a share of their generated cases in `test`: `test:long` runs them again, with all. Paths from the tree's root. */
export const generated = (): ReadonlyArray<string> => {
  const left = new Set(leftToLong())
  return tests().filter((path) => !left.has(path) && reaches(path, (module) => module === "test/support/Runs.ts"))
}
