/**
 * The entry of the npm package `bailiwick`: `bailiwick start` is the program (main.ts), every other word a command
 * (cli/main.ts). Only one of the two is loaded.
 */
import "./process/HideAsyncHooks.ts"
import process from "node:process"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
const [word, ...rest] = process.argv.slice(2)

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`bailiwick needs Node 22.19 or newer: this is Node ${process.versions.node}\n`)
  process.exitCode = 1
} else if (word === "start" && rest.length === 0) {
  await import("./main.ts")
} else {
  await import("./cli/main.ts")
}
