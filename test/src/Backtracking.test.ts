import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "../support/Processes.ts"

it.live("every reader of foreign text takes time in proportion to its length", () =>
  Effect.gen(function* () {
    const readers = yield* start({ module: "test/src/fixtures/Pumped.ts", env: {} })
    // A pattern that backtracks takes minutes here, and the readers before it less than a second each.
    const code = yield* readers.exited.pipe(
      Effect.timeoutOrElse({
        duration: "60 seconds",
        orElse: () => Effect.andThen(readers.kill("SIGKILL"), Effect.as(readers.exited, null)),
      }),
    )
    const begun = [...readers.output().matchAll(/^begin (.+)$/gm)].map(([, name]) => name)
    const ended = [...readers.output().matchAll(/^end (.+)$/gm)].map(([, name]) => name)
    assert.deepStrictEqual(begun.filter((name) => !ended.includes(name)), [], readers.output())
    assert.strictEqual(code, 0, readers.output())
    assert.include(readers.output(), "all read")
  }).pipe(Effect.scoped), 90_000)
