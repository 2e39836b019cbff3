/**
 * `deno task dev`: runs the program, and restarts it when one of its files changes. Deno's own --watch restarts within one
 * process, which still holds the home and its servers: here the old program ends first, as by Ctrl-C.
 */
import { spawn } from "node:child_process"
import { watch } from "node:fs"
import process from "node:process"

const folders = ["schemas", "services", "src", "migrations"]
const args = ["run", "-A", "--v8-flags=--max-semi-space-size=16", "src/main.ts"]

let program
let changed = null
let over = false

const start = () => {
  program = spawn(process.execPath, args, { stdio: "inherit" })
  program.on("exit", (code) => {
    const again = changed !== null
    changed = null
    program = undefined
    if (over) process.exit(code ?? 0)
    if (again) start()
    else console.log(`dev: ended with code ${code}; it starts again with the next change`)
  })
}

let timer
const onChange = (name) => {
  clearTimeout(timer)
  // An editor writes a file in several steps.
  timer = setTimeout(() => {
    console.log(`dev: ${name} changed`)
    if (program === undefined) return start()
    changed = name
    program.kill("SIGTERM")
  }, 300)
}

for (const folder of folders) {
  watch(folder, { recursive: true }, (_, name) => name?.endsWith(".ts") && onChange(`${folder}/${name}`))
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    over = true
    if (program === undefined) process.exit(0)
    program.kill("SIGTERM")
  })
}
start()
