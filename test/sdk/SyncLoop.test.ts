import { assert, it } from "@effect/vitest"
import { DatabaseSync } from "node:sqlite"
import { syncLoop } from "../../sdk/SyncLoop.ts"
import { follow } from "../../sdk/Follow.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { Answered } from "../../sdk/Transmitter.ts"
import { verifyEvent } from "../../sdk/Verify.ts"
import { equal, opened, scene } from "./Receiving.ts"
import { keyOf, now, own as ownType, personNamed, pinsTo, projectId } from "./Tokens.ts"

const over = async (database: DatabaseSync) => {
  const store = sqliteStore(database)
  await store.prepare()
  return syncLoop({
    baseUrl: "https://id.example.org",
    projectId: "portal",
    installedVersion: "1",
    pins: [],
    store,
    token: () => Promise.resolve(""),
    signal: new AbortController().signal,
  })
}

it("after an outage a refused cursor is answered by a snapshot at once; later failures are delayed", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const { failed } = await over(database)
    const away = new TypeError("fetch failed")
    for (let n = 0; n < 6; n++) await failed(away)
    assert.isAtLeast(await failed(away), 15_000)

    const moved = new Answered(409, "cursor_epoch_changed", null)
    assert.strictEqual(await failed(moved), 0)
    // The installation is paused after a restore and gives no snapshot yet.
    const paused = await failed(new Answered(503, "held", null))
    assert.isAtLeast(paused, 500)
    assert.isAtMost(paused, 1_000)
    assert.isAtLeast(await failed(moved), 1_000)
  } finally {
    database.close()
  }
})

it("Retry-After is followed, up to ten minutes", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const { failed } = await over(database)
    assert.strictEqual(await failed(new Answered(503, "held", 60)), 60_000)
    // A larger delay overflows the timer, which would then fire at once.
    assert.strictEqual(await failed(new Answered(503, null, 3_000_000)), 600_000)
  } finally {
    database.close()
  }
})

it("follow stops when aborted, also while it waits for an access token", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const store = sqliteStore(database)
    await store.prepare()
    const [asked, stop] = [Promise.withResolvers<void>(), new AbortController()]
    const following = follow({
      baseUrl: "https://id.example.org",
      projectId: "portal",
      installedVersion: "1",
      pins: [],
      store,
      token: () => {
        asked.resolve()
        return new Promise(() => {})
      },
      signal: stop.signal,
    })
    await asked.promise
    stop.abort()
    await following
  } finally {
    database.close()
  }
})

it("a malformed cursor (422) leads to a snapshot at once", async () => {
  const database = new DatabaseSync(":memory:")
  try {
    const { failed } = await over(database)
    assert.strictEqual(await failed(new Answered(422, null, null)), 0)
  } finally {
    database.close()
  }
})

it("killed after it committed the theft of a key, it is closed, and the next process takes a snapshot", async () => {
  const { at, own } = await scene()
  const before = await opened({ at, own })
  const [stolen, next] = [at.key().kid, await keyOf("transmitter's next")]
  const transition = (payload: object) => ({
    type: ownType("key-transition"),
    subId: personNamed("nobody"),
    payload: { event_timestamp: now, initiating_entity: "admin", ...payload },
  })
  const [announced] = await at.append(transition({ next: [next.kid, "later"] }))
  assert.strictEqual((await before.receive(announced!.set)).status, 202)
  await before.end()
  await at.rotate()
  const [lost] = await at.append(transition({ compromised: stolen, next: ["later", "last"] }))
  const event = await verifyEvent(lost!.set, pinsTo([next.kid], [next.jwk]))
  await own.store.transact(() => Ledger.apply(projectId, [event]))
  assert.isFalse((await own.standing())!.open)

  const after = own.start()
  after.begin()
  await after.noticed("opened")
  assert.lengthOf(after.notices.filter(({ kind }) => kind === "snapshot"), 1)
  await equal({ at, own })
})
