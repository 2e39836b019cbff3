/** A product that polls a stream (RFC 8936). */
import { assert, describe, it } from "vitest"
import { genesis } from "../../sdk/Canonical.ts"
import { equal, scene } from "./Receiving.ts"
import { chained, granted, keyOf, revoked } from "./Tokens.ts"

describe("poll", () => {
  it("messages are applied in the order of positions and acknowledged", async () => {
    const made = await scene()
    const { at, own } = made
    await at.append(granted("first"))
    const one = own.start()
    one.begin("poll")
    await one.noticed("opened")
    const appended = await at.append(granted("pat"), revoked("pat"), granted("ada"))
    at.queue(...[...appended].reverse(), await at.own("verification", {}))
    await at.watch.until(() => at.queued() === 0)
    assert.deepInclude(await own.standing(), { position: 4 })
    assert.includeMembers([...at.polls.at(-1)!.ack], appended.map(({ jti }) => jti))
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "verified"), 1)
    await equal(made)
  })

  it("messages that fail verification are reported and close access; a snapshot leads past them", async () => {
    const made = await scene()
    const { at, own } = made
    const one = own.start()
    one.begin("poll")
    await one.noticed("opened")
    const [pat] = await at.append(granted("pat"))
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
    await one.noticed("opened", 2)
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "invalid_key" })
    await equal(made)
  })

  it("stopped before it acknowledged committed messages, it gets them again and acknowledges them", async () => {
    const made = await scene()
    const { at, own } = made
    const first = own.start()
    first.begin("poll")
    await first.noticed("opened")
    const stopped = own.start({
      fetch: (input, init) => {
        const body = typeof init?.body === "string" ? JSON.parse(init.body) : {}
        return body.ack?.length > 0 ? Promise.reject(new Error("killed")) : fetch(input, init)
      },
    })
    await first.end()
    stopped.begin("poll")
    const appended = await at.append(granted("pat"), granted("ada"))
    at.queue(...appended)
    await stopped.noticed("applied")
    await stopped.noticed("retrying")
    await stopped.end()
    assert.strictEqual(at.queued(), 2)
    const again = own.start()
    again.begin("poll")
    await at.watch.until(() => at.queued() === 0)
    assert.isFalse(again.notices.some(({ kind }) => kind === "applied"))
    await equal(made)
  })

  it("a gap in polled messages is filled by cursor; while the stream is disabled events come by cursor", async () => {
    const made = await scene()
    const { at, own } = made
    const one = own.start()
    one.begin("poll")
    await one.noticed("opened")
    const appended = await at.append(granted("a"), granted("b"), granted("c"))
    at.queue(appended[2]!)
    await at.watch.until(() => at.queued() === 0 && at.polls.length > 0)
    await one.noticed("applied")
    assert.deepInclude(await own.standing(), { position: 3 })
    at.queue(await at.own("stream-updated", { status: "disabled" }))
    await one.noticed("stream")
    await at.append(granted("d"))
    await one.noticed("applied", 2)
    const enabled = await at.own("stream-updated", { status: "enabled" })
    at.queue(enabled, ...await at.append(granted("e")))
    await at.watch.until(() => at.queued() === 0)
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "stream"), 2)
    await equal(made)
  })
})
