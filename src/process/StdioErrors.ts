/**
 * Survives a standard output or error whose reader has ended (`| head`, a log collector that was killed) or whose disk
 * is full: the output is lost, the work goes on. Without an `error` listener, reporting a failed write to stderr fails
 * again, endlessly; and a console that throws would end the loop that logged.
 */
import { Console } from "effect"
import process from "node:process"

/** Call once per process. */
export const goOnUnheard = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}

/** Writes text that may be lost. */
export const say = (stream: NodeJS.WriteStream, text: string): void => {
  try {
    stream.write(text)
  } catch {
    // On a full disk Deno throws, and Node emits `error`.
  }
}

const names = ["log", "error", "group", "groupCollapsed", "groupEnd"] as const

const silently = (name: (typeof names)[number]) => (...args: ReadonlyArray<unknown>) => {
  try {
    globalThis.console[name](...args)
  } catch {
    // As above.
  }
}

/** The console for loggers: a write that fails is dropped. */
export const unheard: Console.Console = Object.assign(
  Object.create(globalThis.console),
  Object.fromEntries(names.map((name) => [name, silently(name)])),
)
