/**
 * Prints the last lines of a run: the slowest files, failed and flaky tests, and how many tests passed and failed. Each
 * attempt has left its results in a folder, as `<task>.<attempt>.json`, and its exit code, as `<task>.<attempt>.exit`.
 *
 *     node .ci/report.mjs FOLDER STATUS
 */
import { readdirSync, readFileSync } from "node:fs"
import { relative } from "node:path"
import process from "node:process"

const [folder, status] = process.argv.slice(2)
const attempts = new Map()
for (const name of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  const [task, attempt] = name.split(".")
  const { testResults } = JSON.parse(readFileSync(`${folder}/${name}`, "utf8"))
  // Results do not contain errors outside of every file; the exit code shows them.
  const passed = readFileSync(`${folder}/${task}.${attempt}.exit`, "utf8").trim() === "0"
  attempts.set(task, [...attempts.get(task) ?? [], { attempt: Number(attempt), passed, testResults }])
}

const shown = (file, test) => `${relative(process.cwd(), file)} ${test}`

/** The failures of a file, by the test's name; a file that failed outside of its tests has one of its own. */
const failures = ({ assertionResults, name, status }) => {
  const failed = assertionResults.filter((test) => test.status === "failed").map((test) => shown(name, test.fullName))
  return failed.length === 0 && status !== "passed" ? [shown(name, "(outside of its tests)")] : failed
}

/** The last result of each file over all attempts, by its path. */
const files = new Map()
const slowest = []
const failedOnce = new Set()
const flaky = []
for (const [task, tries] of attempts) {
  tries.sort((one, other) => one.attempt - other.attempt)
  for (const { testResults } of tries) {
    for (const result of testResults) {
      files.set(result.name, result)
      for (const failure of failures(result)) failedOnce.add(failure)
    }
  }
  for (const { endTime, name, startTime } of tries[0].testResults) slowest.push([endTime - startTime, name])
  const outside = tries.some(({ passed, testResults }) =>
    !passed && testResults.every((result) => failures(result).length === 0)
  )
  if (outside && tries.at(-1).passed) flaky.push(`${task} (an error outside of its files)`)
}
const failed = [...files.values()].flatMap(failures)
flaky.push(...[...failedOnce].filter((failure) => !failed.includes(failure)))

const passedCount = [...files.values()].flatMap(({ assertionResults }) => assertionResults).filter(
  ({ status }) => status === "passed",
).length
const failedCount = passedCount === 0 || (status !== "0" && failed.length === 0) ? failed.length + 1 : failed.length

slowest.sort(([one], [other]) => other - one)
for (const [millis, name] of slowest.slice(0, 10)) console.log(shown(name, `took ${(millis / 1000).toFixed(1)} s`))
for (const failure of failed) console.log(`failed: ${failure}`)
for (const failure of flaky) console.log(`flaky: ${failure}`)
console.log(`${passedCount} passed, ${failedCount} failed`)
process.exitCode = failedCount > 0 ? 1 : 0
