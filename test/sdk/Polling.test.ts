/** A product that polls a stream (RFC 8936). */
import { assert, describe, it } from "vitest"
import { genesis } from "../../sdk/Canonical.ts"
import { equal, scene } from "./Receiving.ts"
import { chained, granted, keyOf, revoked } from "./Tokens.ts"

describe("poll", () => {
  it("what comes is applied in the order of positions, and acknowledged once it is committed", async () => {
    const made = await scene()
    const { at, own } = made
    await at.tell(granted("first"))
    const one = own.start()
    one.pushed("poll")
    await one.said("opened")
    const told = await at.tell(granted("pat"), revoked("pat"), granted("ada"))
    at.queue(...[...told].reverse(), await at.own("verification", {}))
    await at.watch.until(() => at.queued() === 0)
    assert.deepInclude(await own.standing(), { position: 4 })
    assert.includeMembers([...at.polls.at(-1)!.ack], told.map(({ jti }) => jti))
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "verified"), 1)
    await equal(made)
  })

  it("what cannot be believed is said to be so, and a snapshot leads past it", async () => {
    const made = await scene()
    const { at, own } = made
    const one = own.start()
    one.pushed("poll")
    await one.said("opened")
    const [pat] = await at.tell(granted("pat"))
    const stranger = await keyOf("stranger")
    const [forged] = chained([granted("eve")], 1, genesis, 2)
    const misnamed = { jti: "another-number", set: pat!.set }
    at.queue(pat!, { jti: forged!.jti, set: await stranger.sign(forged) }, misnamed)
    await at.watch.until(() => at.queued() === 0)
    const { ack, setErrs } = at.polls.at(-1)!
    assert.deepStrictEqual([...ack], [pat!.jti])
    assert.deepStrictEqual(
      Object.entries(setErrs).map(([jti, { err }]) => [jti, err]),
      [[forged!.jti, "invalid_key"], [misnamed.jti, "invalid_request"]],
    )
    await one.said("opened", 2)
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "invalid_key" })
    await equal(made)
  })

  it("killed before it said what it had committed, it hears it again and says so", async () => {
    const made = await scene()
    const { at, own } = made
    const first = own.start()
    first.pushed("poll")
    await first.said("opened")
    const stopped = own.start({
      fetch: (input, init) => {
        const body = typeof init?.body === "string" ? JSON.parse(init.body) : {}
        return body.ack?.length > 0 ? Promise.reject(new Error("killed")) : fetch(input, init)
      },
    })
    await first.end()
    stopped.pushed("poll")
    const told = await at.tell(granted("pat"), granted("ada"))
    at.queue(...told)
    await stopped.said("applied")
    await stopped.said("retrying")
    await stopped.end()
    assert.strictEqual(at.queued(), 2)
    const again = own.start()
    again.pushed("poll")
    await at.watch.until(() => at.queued() === 0)
    assert.isFalse(again.notices.some(({ kind }) => kind === "applied"))
    await equal(made)
  })

  it("a gap in what is polled is filled in by cursor; while the stream is stopped the cursor goes on", async () => {
    const made = await scene()
    const { at, own } = made
    const one = own.start()
    one.pushed("poll")
    await one.said("opened")
    const told = await at.tell(granted("a"), granted("b"), granted("c"))
    at.queue(told[2]!)
    await at.watch.until(() => at.queued() === 0 && at.polls.length > 0)
    await one.said("applied")
    assert.deepInclude(await own.standing(), { position: 3 })
    at.queue(await at.own("stream-updated", { status: "disabled" }))
    await one.said("stream")
    await at.tell(granted("d"))
    await one.said("applied", 2)
    const enabled = await at.own("stream-updated", { status: "enabled" })
    at.queue(enabled, ...await at.tell(granted("e")))
    await at.watch.until(() => at.queued() === 0)
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "stream"), 2)
    await equal(made)
  })
})
