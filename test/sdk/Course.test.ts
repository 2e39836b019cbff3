import { assert, it } from "@effect/vitest"
import { DatabaseSync } from "node:sqlite"
import { course } from "../../sdk/Course.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { Answered } from "../../sdk/Transmitter.ts"

const over = async (database: DatabaseSync) => {
  const store = sqliteStore(database)
  await store.prepare()
  return course({
    ...{ baseUrl: "https://id.example.org", projectId: "portal", installedVersion: "1", pins: [], store },
    token: () => Promise.resolve(""),
    signal: new AbortController().signal,
  })
}

it("however long the transmitter was away, a restored one is asked for a snapshot at once, and not in a loop", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const { failed } = await over(database)
    const away = new TypeError("fetch failed")
    for (let n = 0; n < 6; n++) await failed(away)
    assert.isAtLeast(await failed(away), 15_000)

    const moved = new Answered(409, "cursor_epoch_changed", null)
    assert.strictEqual(await failed(moved), 0)
    // Held after a restore: it has no snapshot to give yet.
    const held = await failed(new Answered(503, "held", null))
    assert.isAtLeast(held, 500)
    assert.isAtMost(held, 1_000)
    assert.isAtLeast(await failed(moved), 1_000)
  } finally {
    database.close()
  }
})

it("whoever keeps a cursor that is none asks for a snapshot at once", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const { failed } = await over(database)
    assert.strictEqual(await failed(new Answered(422, null, null)), 0)
  } finally {
    database.close()
  }
})
