/** Lines of a file or of standard input, bounded in memory. */
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Schedule, Stdio, Stream } from "effect"
import { linesOf, mostCharacters } from "../../../src/cli/ReadLines.ts"

const read = (parts: Stream.Stream<string>) =>
  Stream.runCollect(linesOf("-")).pipe(
    Effect.provide(Layer.mergeAll(
      Stdio.layerTest({ stdin: Stream.map(parts, (part) => new TextEncoder().encode(part)) }),
      FileSystem.layerNoop({}),
    )),
  )

it.effect("lines are whole wherever their text is cut, and blank ones are kept", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* read(Stream.make("a\n", "b", "c\r\n\nd\ne")), ["a", "bc", "", "d", "e"])
  }))

it.effect("many lines may be longer together than one may be", () =>
  Effect.gen(function* () {
    const line = "x".repeat(mostCharacters / 4)
    const lines = yield* read(Stream.make(`${line}\n`, line, `${line}\n`, `${line}\n${line}`))
    assert.deepStrictEqual(lines.map(({ length }) => length / line.length), [1, 2, 1, 1])
  }))

it.effect("a line without an end is refused before it is in memory", () =>
  Effect.gen(function* () {
    let parts = 0
    const endless = Stream.repeat(Stream.sync(() => (parts += 1, "x".repeat(1024 * 1024))), Schedule.forever)
    const { message } = yield* Effect.flip(read(endless))
    assert.strictEqual(message, `-: has a line of more than ${mostCharacters} characters`)
    assert.isBelow(parts, 12)
  }))
