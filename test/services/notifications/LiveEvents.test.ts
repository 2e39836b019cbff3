import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Change } from "../../../services/notifications/Live/Change.ts"
import { batchOf, beginning, type Position, positionOf } from "../../../services/notifications/Live/Events.ts"

const epoch = "abc123"
const decoder = new TextDecoder()

interface Said {
  readonly version: number
  readonly event: string
  readonly body: unknown
}

const parse = (bytes: Uint8Array): ReadonlyArray<Said> =>
  decoder.decode(bytes).split("\n\n").filter((block) => block !== "").map((block) => {
    const [, version, event, data] = /^id: abc123\.(\d+)\nevent: (.+)\ndata: (.+)$/.exec(block) ?? assert.fail(block)
    return { version: Number(version), event: event!, body: JSON.parse(data!) }
  })

/** An inbox: the versions that are still some notification's, and the version of the newest read-all. */
const inbox = fc.record({
  version: fc.integer({ min: 1, max: 60 }),
  readAll: fc.integer({ min: 0, max: 60 }),
  since: fc.integer({ min: 0, max: 60 }),
  page: fc.integer({ min: 1, max: 12 }),
  owed: fc.boolean(),
  rows: fc.uniqueArray(fc.integer({ min: 1, max: 60 })),
}).map(({ readAll, rows, since, version, ...rest }) => ({
  ...rest,
  version,
  since: Math.min(since, version),
  readAll: Math.min(readAll, version),
  rows: rows.filter((row) => row <= version && row !== Math.min(readAll, version)).sort((a, b) => a - b),
}))

describe("pages of changes", () => {
  it("bring everything newer exactly once, in order, up to the inbox's own position", () => {
    fc.assert(
      fc.property(inbox, ({ owed, page, readAll, rows, since, version }) => {
        const change = (from: number): Change => ({
          epoch,
          version,
          total: 9,
          unread: 3,
          read_all_version: readAll,
          read_all_at: "2026-01-01T00:00:00.000Z",
          rows: rows.filter((row) => row > from).slice(0, page).map((row) => ({
            version: row,
            body: `{"row":${row}}`,
          })),
        })
        let position: Position = { epoch, version: since }
        const said: Array<Said> = []
        for (let turns = 0;; turns++) {
          assert.isAtMost(turns, 61)
          // The statement gives no answer where the reader is up to date and owed no counts.
          if (!owed && position.version === version) break
          const answer = batchOf(change(position.version), position, owed, page)
          said.push(...parse(answer.bytes))
          position = answer.position
          if (!answer.more) break
        }
        assert.deepStrictEqual(position, { epoch, version })
        const events = said.filter(({ event }) => event === "notification").map(({ version }) => version)
        assert.deepStrictEqual(events, rows.filter((row) => row > since))
        const all = said.filter(({ event }) => event === "read-all").map(({ version }) => version)
        assert.deepStrictEqual(all, readAll > since ? [readAll] : [])
        const order = said.map(({ version }) => version)
        assert.deepStrictEqual(order, [...order].sort((a, b) => a - b))
        if (said.length > 0) assert.strictEqual(order.at(-1), version)
        if (owed) assert.strictEqual(said.at(-1)!.event, "counts")
        for (const { body } of said) assert.deepInclude(body as object, { total: 9, unread: 3 })
      }),
      { numRuns: 2_000 },
    )
  })

  it("end with a page that is exactly full", () => {
    const rows = [{ version: 4, body: "{}" }, { version: 5, body: "{}" }]
    const change = { epoch, version: 5, total: 2, unread: 2, read_all_version: 0, read_all_at: null, rows }
    assert.deepInclude(batchOf(change, { epoch, version: 3 }, false, 2), {
      more: false,
      position: { epoch, version: 5 },
    })
  })

  it("carry positions that are read back, and any other text is refused", () => {
    assert.deepStrictEqual(positionOf("0.0"), beginning)
    assert.deepStrictEqual(positionOf("abc123.17"), { epoch, version: 17 })
    for (
      const wrong of ["", "1", ".1", "abc.", "abc.-1", "xyz.1", "abc.1e3", "abc.1 ", `abc.${"9".repeat(16)}`, "a.b.1"]
    ) {
      assert.isNull(positionOf(wrong), wrong)
    }
  })
})
