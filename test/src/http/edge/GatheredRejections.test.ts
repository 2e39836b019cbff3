/** Bounds of the memory that gathers refusals. */
import { assert, describe, it } from "@effect/vitest"
import { GatheredRejections, type Refusal } from "../../../../src/http/edge/GatheredRejections.ts"

const bounds = { kinds: 50, kindsOfOne: 5, ids: 300, idsOfOne: 40 }
const second = 1_000
/** Pairs of status and code in `nth`. */
const codes = 6

/** The nth refusal, of as many kinds as asked for. */
const nth = (n: number, kinds: number): Refusal => ({
  requestId: `${n}`.padStart(128, "r"),
  route: `/v1/route-${n % kinds}`,
  status: n % 2 === 0 ? 404 : 403,
  code: `code-${n % 3}`,
  actor: `account:${n % Math.ceil(kinds / 7)}`,
  credential: `mail_k_${n % kinds}`,
})

const put = (heap: GatheredRejections, refusal: Refusal, id: string, now: number) =>
  heap.isFirst(refusal, now) ? undefined : heap.add(refusal, now) ?? heap.open(refusal, id, now)

describe("gathered refusals", () => {
  it("hold no more than their bounds while nothing can be written", () => {
    const heap = new GatheredRejections(bounds)
    for (let n = 0; n < 100_000; n++) {
      put(heap, nth(n, 10_000), String(n), n * 3)
      const { ids, kinds, owners, records } = heap.size
      // Four assertions each time took longer than the refusals.
      const within = kinds <= bounds.kinds + codes && records <= 3 * bounds.kinds + codes &&
        ids <= bounds.ids + records && owners <= kinds + records
      if (!within) assert.fail(`after ${n + 1} refusals: ${JSON.stringify(heap.size)}`)
    }
  })

  it("count every refusal once, and hold nothing a minute after all is written", () => {
    const heap = new GatheredRejections(bounds)
    let [first, counted] = [0, 0]
    const write = () => {
      for (const { count, id } of heap.unwritten) {
        heap.close(id)
        counted += count
        heap.done(id)
      }
    }
    for (let n = 0; n < 10_000; n++) {
      if (put(heap, nth(n, 100), String(n), n * 10) === undefined) first++
      if (n % 1_000 === 0) write()
    }
    write()
    assert.strictEqual(first + counted, 10_000)
    heap.add(nth(0, 1), 10_000 * 10 + 60 * second)
    assert.deepStrictEqual(heap.size, { kinds: 0, owners: 0, records: 0, ids: 0 })
  })

  it("list no more ids of one actor than allowed, and still those of the others", () => {
    const heap = new GatheredRejections(bounds)
    const of = (actor: string, n: number): Refusal => ({ ...nth(0, 1), actor, requestId: `${actor}-${n}` })
    for (let n = 0; n < 100; n++) put(heap, of("account:a", n), `a-${n}`, 0)
    for (let n = 0; n < 10; n++) put(heap, of("account:b", n), `b-${n}`, 0)
    assert.deepStrictEqual(heap.unwritten.map(({ count, requestIds }) => [count, requestIds.length]), [[99, 40], [
      9,
      9,
    ]])
  })

  it("wait twice as long each time, up to half a minute, and begin again after a quiet minute", () => {
    const heap = new GatheredRejections(bounds)
    const refusal = nth(0, 1)
    let now = 0
    const pauses = Array.from({ length: 7 }, (_, n) => {
      const { id, pause } = heap.open(refusal, String(n), now)
      heap.close(id)
      heap.done(id)
      now += pause
      return pause / second
    })
    assert.deepStrictEqual(pauses, [1, 2, 4, 8, 16, 30, 30])
    now += 60 * second
    assert.isTrue(heap.isFirst(refusal, now))
    assert.isFalse(heap.isFirst(refusal, now))
    assert.strictEqual(heap.open(refusal, "next", now).pause, second)
  })
})
