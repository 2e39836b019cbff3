/** The transparency log of a running program, by its operator's commands: its key replaced while readers verify it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { reason } from "../support/Fixtures.ts"
import { fixture } from "./support/ProgramIdentity.ts"
import { until } from "./support/Until.ts"

describe("the log's key", () => {
  it.live(
    "is replaced by commands: readers of either key verify the log until the first one retires",
    () =>
      Effect.gen(function* () {
        const at = yield* fixture()
        yield* at.grant("product")
        const log = (...args: ReadonlyArray<string>) =>
          Effect.map(at.type("log", ...args), ({ code, output }) => ({ code, lines: output.trim().split("\n") }))
        const verified = (key: string) => log("verify", `${at.instance.origin()}/log`, "--key", key)
        const comes = (what: string, key: string) => until(what, verified(key), ({ code }) => code === 0)

        const [first] = (yield* log("key")).lines
        const [told] = (yield* comes("a checkpoint of the first key", first!)).lines
        assert.match(told!, /^\S+\/log: [1-9]\d* entries, 0 witnesses$/)
        assert.deepStrictEqual(yield* log("retire-key", first!, "--reason", reason), {
          code: 1,
          lines: ["the log's only key: add another one first"],
        })

        const [second] = (yield* log("add-key", "--as", "olga", "--reason", reason)).lines
        assert.deepStrictEqual((yield* log("key")).lines, [first, second])
        yield* comes("a checkpoint of both keys", second!)
        assert.strictEqual((yield* verified(first!)).code, 0)
        assert.strictEqual((yield* log("add-key", "--reason", reason)).code, 1)

        assert.strictEqual((yield* log("retire-key", first!, "--reason", reason)).code, 0)
        const refused = yield* until("the first key's end", verified(first!), ({ code }) => code === 1)
        assert.match(refused.lines[0]!, /^the log is refused: /)
        assert.strictEqual((yield* verified(second!)).code, 0)
        assert.deepStrictEqual((yield* log("release", "--reason", reason)).code, 1)

        const audited = yield* at.type("audit", "--action", "log-key.added")
        const { actor, details } = JSON.parse(audited.output.trim())
        assert.deepStrictEqual([actor, details.key, details.reason], ["operator:olga", second, reason])
      }).pipe(Effect.scoped),
    240_000,
  )
})
