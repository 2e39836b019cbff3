/**
 * Parses JSON bodies: bounds their nesting, and reports where a broken one breaks, in the words of Python's `json` as
 * FastAPI repeats them. Positions count code points, as Python's do.
 */
import { Result } from "effect"

/** Deeper bodies are refused before they are parsed: a recursive decoder would run out of stack. */
export const maxDepth = 32

/**
 * The most members of all objects of a body, and the most lists and objects: more than any body of the contract has.
 * Bodies beyond these bounds are refused before they are parsed; an object of 28,000 names alone takes 8 ms of the main
 * thread.
 */
export const maxMembers = 5_000
export const maxComposites = 5_000

export interface JsonFault {
  readonly pos: number
  readonly error: string
}

const space = /[ \t\n\r]*/y
const numeral = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
const word = /true|false|null/y

const match = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

class Broken {
  readonly at: number
  readonly error: string
  constructor(at: number, error: string) {
    this.at = at
    this.error = error
  }
}

const skip = (text: string, at: number) => text.charCodeAt(at) > 32 ? at : match(space, text, at)

const endOfString = (text: string, start: number): number => {
  for (let i = start + 1; i < text.length; i++) {
    const char = text[i]!
    if (char === '"') return i + 1
    if (char < " ") throw new Broken(i, "Invalid control character at")
    if (char !== "\\") continue
    const escape = text[++i]
    if (escape === undefined) break
    if (escape === "u") {
      if (!/^[0-9a-fA-F]{4}$/.test(text.slice(i + 1, i + 5))) throw new Broken(i, "Invalid \\uXXXX escape")
      i += 4
    } else if (!'"\\/bfnrt'.includes(escape)) throw new Broken(i - 1, "Invalid \\escape")
  }
  throw new Broken(start, "Unterminated string starting at")
}

const endOfObject = (text: string, start: number): number => {
  let at = skip(text, start + 1)
  if (text[at] === "}") return at + 1
  while (true) {
    if (text[at] !== '"') throw new Broken(at, "Expecting property name enclosed in double quotes")
    at = skip(text, endOfString(text, at))
    if (text[at] !== ":") throw new Broken(at, "Expecting ':' delimiter")
    at = skip(text, endOfValue(text, skip(text, at + 1)))
    if (text[at] === "}") return at + 1
    if (text[at] !== ",") throw new Broken(at, "Expecting ',' delimiter")
    at = skip(text, at + 1)
  }
}

const endOfArray = (text: string, start: number): number => {
  let at = skip(text, start + 1)
  if (text[at] === "]") return at + 1
  while (true) {
    at = skip(text, endOfValue(text, at))
    if (text[at] === "]") return at + 1
    if (text[at] !== ",") throw new Broken(at, "Expecting ',' delimiter")
    at = skip(text, at + 1)
  }
}

const endOfValue = (text: string, at: number): number => {
  if (text[at] === '"') return endOfString(text, at)
  if (text[at] === "{") return endOfObject(text, at)
  if (text[at] === "[") return endOfArray(text, at)
  const end = Math.max(match(word, text, at), match(numeral, text, at))
  if (end < 0) throw new Broken(at, "Expecting value")
  return end
}

/** The number of code points before an index. */
const codePoints = (text: string, at: number): number => {
  let count = 0
  for (let i = 0; i < at; count++) i += text.codePointAt(i)! > 0xffff ? 2 : 1
  return count
}

const whereBroken = (text: string): JsonFault => {
  try {
    const end = skip(text, endOfValue(text, skip(text, 0)))
    return { pos: codePoints(text, end), error: "Extra data" }
  } catch (broken) {
    if (!(broken instanceof Broken)) throw broken
    return { pos: codePoints(text, broken.at), error: broken.error }
  }
}

const beyond = (text: string, at: number, error: string): JsonFault => ({ pos: codePoints(text, at), error })

/** Where a text exceeds these bounds, judged by its brackets and colons. Text within quotes does not count. */
const tooMuchIn = (text: string): JsonFault | undefined => {
  let depth = 0
  let composites = 0
  let members = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 92) i++
      else if (code === 34) quoted = false
    } else if (code === 34) quoted = true
    else if (code === 58) {
      if (++members > maxMembers) return beyond(text, i, `More than ${maxMembers} members`)
    } else if (code === 123 || code === 91) {
      if (++depth > maxDepth) return beyond(text, i, `Nesting deeper than ${maxDepth} levels`)
      if (++composites > maxComposites) return beyond(text, i, `More than ${maxComposites} lists and objects`)
    } else if (code === 125 || code === 93) depth--
  }
  return undefined
}

/** Parses a body, or returns where it breaks. */
export const parse = (text: string): Result.Result<unknown, JsonFault> => {
  const tooMuch = tooMuchIn(text)
  if (tooMuch) return Result.fail(tooMuch)
  try {
    return Result.succeed(JSON.parse(text))
  } catch {
    return Result.fail(whereBroken(text))
  }
}
