/**
 * What nobody hears: standard output and error whose reader has ended (`| head`, a collector of logs that was killed), or
 * whose disk is full. The words are lost and the work goes on. Otherwise a stream's error that nobody listens to would be
 * told to that stream, whose next error that is, for ever; and a console that throws would end the loop that spoke.
 */
import { Console } from "effect"
import process from "node:process"

/** For the program's own process, once. */
export const goOnUnheard = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}

/** Writes what may be lost. */
export const say = (stream: NodeJS.WriteStream, text: string): void => {
  try {
    stream.write(text)
  } catch {
    // A full disk: Deno throws, Node emits.
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

/** What loggers speak to. */
export const unheard: Console.Console = Object.assign(
  Object.create(globalThis.console),
  Object.fromEntries(names.map((name) => [name, silently(name)])),
)
