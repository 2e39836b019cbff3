/**
 * How a reader types the program's commands here, for hints and errors: `bailiwick …` from the npm package, which is one
 * bundle of JavaScript (`task bundle`), and README's spelling from a checkout, whose modules are TypeScript.
 */
import process from "node:process"

/** Whether this is the bundle of the npm package. */
export const isBundle = !import.meta.url.endsWith(".ts")

// npm sets the variable for a program that npx runs, which is then on no PATH.
const packaged = process.env["npm_command"] === "exec" ? "npx bailiwick" : "bailiwick"

const task = "npx -y deno@2.9.6 task"

/** The command that starts the program. */
export const startCommand = isBundle ? `${packaged} start` : `${task} start`

/** A command of the command line, such as `migrate`, with its arguments. */
export const cliCommand = (args: string): string => isBundle ? `${packaged} ${args}` : `${task} cli ${args}`

/** The same where its output is used (`$(…)`): Deno prints a task's own command unless it is quiet. */
export const quietCommand = (args: string): string => isBundle ? cliCommand(args) : `${task} -q cli ${args}`
