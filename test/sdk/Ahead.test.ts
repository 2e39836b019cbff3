/**
 * A product that is behind prefetches the next page while it applies one, and uses it only if it follows its cursor.
 */
import { assert, it } from "@effect/vitest"
import { DatabaseSync } from "node:sqlite"
import { genesis } from "../../sdk/Canonical.ts"
import { syncLoop } from "../../sdk/SyncLoop.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { chained, granted, issuer, keyOf, now, projectId } from "./Tokens.ts"

const key = await keyOf("transmitter")
const names = ["pat", "ada", "eve", "joe", "kim"]
const sets = await Promise.all(chained(names.map((name) => granted(name))).map((one) => key.sign(one)))
const state = { people: [], access: [], sessions_floor: [], sessions: [], identities: [], project: null, keys: null }

/** A product at position 0, and a transmitter with pages of two events; `lost`: the requests for pages that fail. */
const scene = async (cursorOf = (last: number) => `c${last}`, lost = (_request: number) => false) => {
  const database = new DatabaseSync(":memory:")
  const store = sqliteStore(database)
  await store.prepare()
  const start = { jti: "start", issuedAt: now, epoch: 1, position: 0, cursor: "c0", chainHead: genesis, state }
  await store.transact(() => Ledger.swap(projectId, { ...start, keySet: [key.kid] }))
  const happened: Array<string> = []
  const limits: Array<number> = []
  const clock = { millis: now * 1_000 }
  let asked = 0
  const answer = (input: Parameters<typeof fetch>[0], init: RequestInit | undefined): Response => {
    const { pathname, searchParams } = new URL(String(input))
    if (pathname.endsWith("/jwks")) return Response.json({ keys: [key.jwk] })
    if (pathname.endsWith("/acknowledgements")) {
      const { cursor } = JSON.parse(String(init?.body))
      happened.push(`acknowledged ${cursor}`)
      return Response.json({ acknowledged_cursor: cursor })
    }
    const after = searchParams.get("after")!
    happened.push(`asked ${after}`)
    limits.push(Number(searchParams.get("limit")))
    if (lost(++asked)) throw new TypeError("fetch failed")
    const from = Number(after.slice(1))
    const items = sets.slice(from, from + 2).map((set) => ({ set }))
    const last = from + items.length
    return Response.json({ items, cursor: cursorOf(last), more: last < sets.length })
  }
  const fetched: typeof fetch = (input, init) => new Promise((resolve) => resolve(answer(input, init)))
  const own = syncLoop({
    baseUrl: "https://id.example",
    projectId,
    installedVersion: "1",
    pins: [],
    store,
    issuer,
    fetch: fetched,
    token: () => Promise.resolve("t"),
    signal: new AbortController().signal,
    now: () => clock.millis,
    notice: (notice) => {
      if (notice.kind === "applied") happened.push(`applied ${notice.position}`)
      if (notice.kind === "opened") happened.push("opened")
    },
  })
  return { clock, happened, limits, turn: () => own.turn(0) }
}

it("the next page is requested before this one is applied; pages within a second share an acknowledgement", async () => {
  const { clock, happened, turn } = await scene()
  assert.isFalse(await turn())
  assert.isFalse(await turn())
  clock.millis += 1_000
  assert.isTrue(await turn())
  const first = ["acknowledged c0", "asked c0", "asked c2", "applied 2"]
  assert.deepStrictEqual(happened, [...first, "asked c4", "applied 4", "applied 5", "acknowledged c5", "opened"])
})

it("while more pages follow, an acknowledgement is sent once a second has passed", async () => {
  const { clock, happened, turn } = await scene()
  await turn()
  clock.millis += 1_000
  await turn()
  assert.deepStrictEqual(happened.slice(-2), ["applied 4", "acknowledged c4"])
})

it("a prefetched page after another cursor than the local one is not used", async () => {
  const { happened, turn } = await scene(() => "c1")
  await turn()
  assert.deepStrictEqual(happened.slice(-2), ["asked c1", "applied 2"])
  await turn()
  assert.deepStrictEqual(happened.slice(-3), ["asked c2", "asked c1", "applied 4"])
})

it("a failed prefetch fails the turn that needs it; the next turn requests a page of the usual size", async () => {
  const { happened, limits, turn } = await scene(undefined, (request) => request === 2)
  await turn()
  assert.strictEqual(await turn().then(() => "", String), "TypeError: fetch failed")
  await turn()
  assert.deepStrictEqual(happened.slice(-3), ["asked c2", "asked c4", "applied 4"])
  // The larger page may have been too long; a page of the usual size always fits.
  assert.deepStrictEqual(limits, [350, 1_000, 350, 1_000])
})
