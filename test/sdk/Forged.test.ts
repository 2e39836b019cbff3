/**
 * Manipulated pages: if anything is changed, moved, left out or inserted, nothing of the page is applied, and access is
 * closed. Repeated events change nothing, and a page that ends early is the beginning of the true page.
 */
import { assert, describe, it } from "@effect/vitest"
import { decodeProtectedHeader } from "jose"
import { DatabaseSync } from "node:sqlite"
import { syncLoop } from "../../sdk/SyncLoop.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { genesis, type Json } from "../../sdk/Canonical.ts"
import { Gap, Refusal, type RefusalStep } from "../../sdk/Refusal.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { verifyEvent } from "../../sdk/Verify.ts"
import { runs } from "../support/Runs.ts"
import {
  audience,
  chained,
  type EventInput,
  granted,
  issuer,
  keyOf,
  now,
  own,
  personNamed,
  pinsTo,
  projectId,
  revoked,
  type SigningKey,
} from "./Tokens.ts"

const key = await keyOf("transmitter")
const second = await keyOf("transmitter's next")
const retired = await keyOf("retired")
const stranger = await keyOf("stranger")
const state = { people: [], access: [], sessions_floor: [], sessions: [], identities: [], project: null, keys: null }

const history = chained([
  ...["pat", "ada"].map((name) => granted(name)),
  ...[revoked("pat"), granted("eve"), granted("joe"), revoked("ada"), granted("kim")],
])
type Claims = (typeof history)[number]

const known = 2
const signed = (claims: ReadonlyArray<Claims>, by: SigningKey = key) => Promise.all(claims.map((one) => by.sign(one)))
const before = await signed(history.slice(0, known))
const page = await signed(history.slice(known))
const digestOf = ({ events }: Claims) =>
  (Object.values(events) as unknown as [{ readonly lifecycle: { readonly digest: string } }])[0].lifecycle.digest
const headBefore = digestOf(history[known - 1]!)

/** A product that has applied the first events and is open; `turn` gives it a page. */
const product = async (kids: ReadonlyArray<string> = [key.kid]) => {
  const database = new DatabaseSync(":memory:")
  const store = sqliteStore(database)
  await store.prepare()
  const start = { jti: "start", issuedAt: now, epoch: 1, position: 0, cursor: "c0", chainHead: genesis, state }
  await store.transact(() => Ledger.swap(projectId, { ...start, keySet: kids }))
  const pins = pinsTo([key.kid], [key.jwk])
  const first = await Promise.all(before.map((set) => verifyEvent(set, pins)))
  await store.transact(() => Ledger.apply(projectId, first))
  const standing = async () => (await store.read(() => Ledger.standing(projectId)))!
  const place = await standing()
  await store.transact(() => Ledger.open(projectId, place))

  const rows = () =>
    ["facts", "pins", "seen", "staged"].map((table) =>
      database.prepare(`select * from bailiwick_${table}`).all().map((row) => JSON.stringify(row)).sort()
    )
  let sets: ReadonlyArray<string> = []
  const served = [key.jwk, second.jwk, stranger.jwk]
  const fetched: typeof fetch = (input) => {
    const { pathname } = new URL(String(input))
    if (pathname.endsWith("/jwks")) return Promise.resolve(Response.json({ keys: served }))
    if (!pathname.endsWith("/events")) return Promise.resolve(Response.json({ acknowledged_cursor: `c${known}` }))
    const items = sets.map((set) => ({ set }))
    return Promise.resolve(Response.json({ items, cursor: `c${known + sets.length}`, more: false }))
  }
  const { failed, turn } = syncLoop({
    baseUrl: "https://id.example",
    projectId,
    installedVersion: "1",
    pins: [],
    store,
    issuer,
    fetch: fetched,
    token: () => Promise.resolve("t"),
    signal: new AbortController().signal,
    now: () => now * 1_000,
  })
  return {
    failed,
    rows,
    standing,
    turn: async (given: ReadonlyArray<string>) => {
      sets = given
      return await turn(0).then(() => null, (error: unknown) => error)
    },
  }
}

type Product = Awaited<ReturnType<typeof product>>

/** The step at which a page is refused, or "gap"; asserts that nothing of it was applied. */
const refusedBy = async (one: Product, sets: ReadonlyArray<string>, name: string): Promise<RefusalStep | "gap"> => {
  const [rows, place] = [one.rows(), await one.standing()]
  const error = await one.turn(sets)
  assert.deepStrictEqual(one.rows(), rows, name)
  assert.deepStrictEqual(await one.standing(), place, name)
  if (error instanceof Gap) return "gap"
  assert.instanceOf(error, Refusal, `${name}: ${error}`)
  return (error as Refusal).step
}

/** As above, with a new product; asserts that its access is closed afterwards. */
const closes = async (sets: ReadonlyArray<string>, name: string, kids?: ReadonlyArray<string>) => {
  const one = await product(kids)
  const step = await refusedBy(one, sets, name)
  await one.failed(step === "gap" ? new Gap(name) : new Refusal(step, name))
  assert.isFalse((await one.standing()).open, name)
  return step
}

const changed = (sets: ReadonlyArray<string>, at: number, set: string) => sets.with(at, set)
const last = page.length - 1

/** A document's variants: each value changed, each member removed, one member added. */
const variants = (value: Json): ReadonlyArray<readonly [path: string, Json]> => {
  if (Array.isArray(value)) return [["[]", [...value, 0]]]
  if (value === null || typeof value !== "object") {
    return [["", typeof value === "number" ? value + 1 : typeof value === "string" ? `${value}0` : 0]]
  }
  const members = value as { readonly [name: string]: Json }
  return [
    ["+", { ...members, added: 1 }],
    ...Object.keys(members).flatMap((name): ReadonlyArray<readonly [string, Json]> => {
      const { [name]: member, ...rest } = members
      const inside = variants(member!).map(([path, other]) => [`${name}.${path}`, { ...rest, [name]: other }] as const)
      return [[`-${name}`, rest], ...inside]
    }),
  ]
}

const encoded = (value: Json) => Buffer.from(JSON.stringify(value)).toString("base64url")

describe("a page", () => {
  it("that is not manipulated is applied as a whole", async () => {
    const one = await product()
    assert.isNull(await one.turn(page))
    assert.deepInclude(await one.standing(), { position: history.length, open: true })
  })

  it("with a changed character in a message is refused", async () => {
    const one = await product()
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    const step = Math.round(3 * 1_000 / runs(1_000))
    for (const [at, set] of page.entries()) {
      for (let i = at % 3; i < set.length; i += step) {
        // Only the lowest bit, which a base64 decoder may ignore in the last character.
        const other = alphabet[alphabet.indexOf(set[i]!) ^ 1] ?? "A"
        const refused = await refusedBy(
          one,
          changed(page, at, set.slice(0, i) + other + set.slice(i + 1)),
          `${at} ${i}`,
        )
        assert.include(["signature", "header", "typ", "alg", "kid", "compact"], refused)
      }
      for (const bits of [1, 2, 4, 8]) {
        const end = alphabet[alphabet.indexOf(set.at(-1)!) ^ bits]!
        assert.strictEqual(await refusedBy(one, changed(page, at, set.slice(0, -1) + end), `${at} end`), "signature")
      }
    }
  }, 120_000)

  it("with a member changed, removed or added is refused under any signature", async () => {
    const one = await product()
    for (const at of [0, 2, last]) {
      const claims = history[known + at]!
      const [head, , signature] = page[at]!.split(".") as [string, string, string]
      for (const [path, other] of variants(claims as unknown as Json)) {
        const kept = changed(page, at, `${head}.${encoded(other)}.${signature}`)
        assert.strictEqual(await refusedBy(one, kept, path), "signature")
        const named = changed(page, at, await stranger.sign(other, { kid: key.kid }))
        assert.strictEqual(await refusedBy(one, named, path), "signature")
      }
      const header = decodeProtectedHeader(page[at]!) as unknown as Json
      for (const [path, other] of variants(header)) {
        const rest = page[at]!.slice(head.length)
        await refusedBy(one, changed(page, at, `${encoded(other)}${rest}`), `header ${path}`)
      }
      const own = changed(page, at, await stranger.sign(claims))
      assert.strictEqual(await refusedBy(one, own, "a stranger's"), "kid")
    }
  }, 120_000)

  it("with messages exchanged, or one left out before the end, has a gap", async () => {
    const one = await product()
    for (let i = 0; i < page.length; i++) {
      for (let j = 0; j < i; j++) {
        const moved = page.with(i, page[j]!).with(j, page[i]!)
        assert.strictEqual(await refusedBy(one, moved, `${i} and ${j}`), "gap")
      }
      if (i < last) assert.strictEqual(await refusedBy(one, page.toSpliced(i, 1), `without ${i}`), "gap")
    }
    const closed = await closes(page.toReversed(), "backwards")
    assert.strictEqual(closed, "gap")
  })

  it("with repeated events changes nothing twice; one that ends early is continued by the rest", async () => {
    const [whole, twice, again, short] = [await product(), await product(), await product(), await product()]
    await whole.turn(page)
    assert.isNull(await twice.turn(page.flatMap((set) => [set, set])))
    assert.isNull(await again.turn([...before, ...page, ...before]))
    for (const one of [twice, again]) assert.deepStrictEqual(one.rows(), whole.rows())
    assert.isNull(await short.turn(page.slice(0, 2)))
    assert.deepInclude(await short.standing(), { position: known + 2 })
    assert.isNull(await short.turn(page.slice(2)))
    assert.deepStrictEqual(short.rows(), whole.rows())
  })

  const inputs: ReadonlyArray<EventInput> = [granted("mallory"), granted("mallet"), revoked("eve")]
  const at = known + 1
  const transition = (payload: EventInput["payload"]): EventInput => ({
    type: own("key-transition"),
    subId: personNamed("nobody"),
    payload: { event_timestamp: now, initiating_entity: "admin", ...payload },
  })
  const elsewhere = (claims: ReadonlyArray<object>, by = key) => Promise.all(claims.map((one) => by.sign(one)))
  const following = chained(inputs, 1, headBefore, at)

  it("with messages by the same key of another project, issuer, epoch, history or type closes access", async () => {
    const foreign: Readonly<Record<string, readonly [RefusalStep | "gap", ReadonlyArray<object>]>> = {
      "another project's": ["aud", following.map((one) => ({ ...one, aud: `${audience}0` }))],
      "another issuer's": ["iss", following.map((one) => ({ ...one, iss: `${issuer}0` }))],
      "another epoch's": ["gap", chained(inputs, 2, headBefore, at)],
      "the epoch's before": ["gap", chained(inputs, 0, headBefore, at)],
      "another history's": ["gap", chained(inputs, 1, genesis, at)],
      "another history's from the beginning": ["gap", chained([...inputs, ...inputs], 1, genesis, 1)],
      "of the future": ["iat", following.map((one) => ({ ...one, iat: now + 61 }))],
      "one that ends": ["exp", following.map((one) => ({ ...one, exp: now + 600 }))],
    }
    for (const [name, [expected, claims]] of Object.entries(foreign)) {
      const sets = await elsewhere(claims)
      assert.strictEqual(await closes(sets, name), expected, name)
      if (expected === "gap") continue
      // Among valid messages, in place of one of them.
      for (let i = 0; i < page.length; i++) assert.strictEqual(await closes(page.with(i, sets[0]!), name), expected)
    }
    // A fork: two valid messages, then those of another history.
    const fork = await elsewhere(chained(inputs, 1, genesis, at + 2))
    assert.strictEqual(await closes([...page.slice(0, 2), ...fork], "a fork"), "gap")
    for (const typ of ["lifecycle-snapshot+jwt", "at+jwt", "JWT"]) {
      const set = await key.sign(history[known], { typ })
      assert.strictEqual(await closes(page.with(0, set), typ), "typ")
    }
  })

  it("signed from any message on by a key not pinned, no longer served or stolen closes access", async () => {
    for (let from = 0; from < page.length; from++) {
      const switched = async (by: SigningKey) => [
        ...page.slice(0, from),
        ...await signed(history.slice(known + from), by),
      ]
      assert.strictEqual(await closes(await switched(second), "not announced"), "kid")
      const both = [key.kid, retired.kid]
      assert.strictEqual(await closes(await switched(retired), "served no more", both), "key")
    }
    const stolen = chained([transition({ compromised: key.kid, next: ["x", "y"] }), ...inputs], 1, headBefore, at)
    const thief = [await second.sign(stolen[0]!), ...await elsewhere(stolen.slice(1))]
    assert.strictEqual(await closes(thief, "by the thief", [key.kid, second.kid]), "kid")
    const itself = await elsewhere(stolen)
    assert.strictEqual(await closes(itself, "its own loss"), "kid")
  })

  it("that announces a key and continues with it is applied in two turns", async () => {
    const claims = chained([transition({ next: [second.kid, "later"] }), ...inputs], 1, headBefore, at)
    const sets = [await key.sign(claims[0]!), ...await elsewhere(claims.slice(1), second)]
    const one = await product()
    assert.isNull(await one.turn(sets))
    assert.deepInclude(await one.standing(), { position: at })
    assert.isNull(await one.turn(sets))
    assert.deepInclude(await one.standing(), { position: at + inputs.length })
    // Announced only by the key itself.
    const alone = [...page.slice(0, 2), await second.sign(claims[0]!)]
    assert.strictEqual(await closes(alone, "by itself"), "kid")
  })
})
