/**
 * A product that receives by a stream. The cases are those of the receiver modules of the OpenID conformance suite
 * (Shared Signals Framework): invalid SET, issuer mismatch, redelivered SET, removed subject, verification (wrong
 * state, wrong subject, behind queued events, unsolicited), status changed by the transmitter, access-token expiry.
 */
import type { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "vitest"
import type { Answer } from "../../sdk/Receive.ts"
import { genesis } from "../../sdk/Canonical.ts"
import type { Store } from "../../sdk/Store.ts"
import { streamId } from "./KitOrigin.ts"
import { equal, opened, product, scene } from "./Receiving.ts"
import {
  chained,
  type EventInput,
  granted,
  keyOf,
  now,
  own as ownType,
  personNamed,
  projectId,
  revoked,
} from "./Tokens.ts"

const secret = "Bearer of the stream"

const accepted: Answer = { status: 202, body: null }

describe("receive", () => {
  it("a message is committed before it is answered, and acknowledged afterwards", async () => {
    const made = await scene()
    const { at, own } = made
    await at.append(granted("pat"))
    const one = await opened(made)
    const [ada] = await at.append(granted("ada"))
    assert.deepStrictEqual(await one.receive(ada!.set), accepted)
    assert.deepInclude(await own.standing(), { position: 2, open: true })
    await at.watch.until(() => at.acknowledged.at(-1) === "c2")
    await equal(made)
    // The first event came with the snapshot; only the second one, pushed, was applied as an event.
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "applied"), 1)
  })

  it("a SET that is delivered again is accepted and changes nothing", async () => {
    const made = await scene()
    const one = await opened(made)
    const appended = await made.at.append(granted("pat"), revoked("pat"), granted("ada"))
    for (const { set } of appended) assert.deepStrictEqual(await one.receive(set), accepted)
    for (const { set } of [...appended, ...appended].reverse()) {
      assert.deepStrictEqual(await one.receive(`${set}\n`), accepted)
    }
    await equal(made)
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "applied"), 3)
  })

  it("an invalid SET without an Authorization is refused with RFC 8935's error and changes nothing", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made)
    const stranger = await keyOf("stranger")
    const [good] = chained([granted("pat")])
    const forged = (claims: object) => at.key().sign(claims)
    const cases: ReadonlyArray<readonly [string, string]> = [
      ["", "invalid_request"],
      ["not a token", "invalid_request"],
      [JSON.stringify(good), "invalid_request"],
      [await forged({ ...good, events: {} }), "invalid_request"],
      [await forged({ ...good, events: undefined }), "invalid_request"],
      [await forged({ ...good, sub: "pat" }), "invalid_request"],
      [await at.key().sign(good, { typ: "JWT" }), "invalid_request"],
      [await forged({ ...good, iss: "https://other.example" }), "invalid_issuer"],
      [await forged({ ...good, aud: "https://other.example" }), "invalid_audience"],
      [await stranger.sign(good), "invalid_key"],
      [await stranger.sign(good, { kid: at.key().kid }), "authentication_failed"],
    ]
    const before = await own.standing()
    // The key may have been announced just now, but such a push causes at most one check by cursor per second.
    assert.deepInclude(await one.receive(await stranger.sign(good)), { status: 503 })
    own.clock.ahead += 1_001
    for (const [token, err] of cases) {
      const answer = await one.receive(token)
      assert.deepStrictEqual([answer.status, answer.body?.err], [400, err], token)
      assert.isString(answer.body?.description)
    }
    assert.deepStrictEqual(await own.standing(), before)
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "refused"), cases.length)
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
  })

  it("a push without the stream's Authorization is refused; a forged message with it closes access", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made, { authorization: secret })
    const [pat] = await at.append(granted("pat"))
    for (const presented of [undefined, "", "Bearer of another stream"]) {
      assert.deepInclude(await one.receive(pat!.set, presented), { status: 400 })
    }
    assert.deepInclude(await own.standing(), { position: 0, open: true })
    assert.deepStrictEqual(await one.receive(pat!.set, secret), accepted)

    const stranger = await keyOf("stranger")
    const [forged] = chained([granted("eve")], 1, genesis, 2)
    const answer = await one.receive(await stranger.sign(forged), secret)
    assert.strictEqual(answer.body?.err, "invalid_key")
    await one.noticed("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "invalid_key" })
    // The history itself has not changed: a snapshot opens access again.
    await one.noticed("opened", 2)
    await equal(made)
  })

  it("an event about an unknown person, of an unknown type or with another subject format is accepted", async () => {
    const made = await scene()
    const one = await opened(made)
    const later: EventInput = {
      type: ownType("of-later-days"),
      subId: personNamed("nobody"),
      payload: { event_timestamp: now },
    }
    const email: EventInput = { ...later, subId: { format: "email", email: "removed@example.com" } }
    for (const { set } of await made.at.append(revoked("removed"), later, email, granted("pat"))) {
      assert.deepStrictEqual(await one.receive(set), accepted)
    }
    await equal(made)
  })

  it("verification: solicited, unsolicited, wrong state, wrong subject, before and after events", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made, { authorization: secret })
    const receive = ({ set }: { readonly set: string }) => one.receive(set, secret)
    await one.verify()
    const state = at.verifications.at(-1)!
    const events = await at.append(granted("pat"), granted("ada"))
    const verification = await at.own("verification", { state })
    // Before two events that arrive later, and again after them.
    assert.deepStrictEqual(await receive(verification), accepted)
    for (const event of events) assert.deepStrictEqual(await receive(event), accepted)
    assert.deepStrictEqual(await receive(verification), accepted)
    assert.deepStrictEqual(await receive(await at.own("verification", {})), accepted)
    assert.deepStrictEqual(
      one.notices.flatMap((notice) => notice.kind === "verified" ? [notice.solicited] : []),
      [true, true, false],
    )
    const wrong = async (...what: Parameters<typeof at.own>) => (await receive(await at.own(...what))).body?.err
    assert.strictEqual(await wrong("verification", { state: "x" }), "invalid_state")
    assert.strictEqual(await wrong("verification", { state: 1 }), "invalid_state")
    const other = { format: "opaque", id: "another-stream" }
    assert.strictEqual(await wrong("verification", { state }, other), "invalid_request")
    assert.strictEqual(await wrong("verification", { state }, { format: "email", email: streamId }), "invalid_request")
    assert.strictEqual(await wrong("stream-updated", { status: "asleep" }), "invalid_request")
    assert.strictEqual(await wrong("something-else", {}), "invalid_request")
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
    await equal(made)
  })

  it("while the stream is paused events come by cursor; pushed afterwards they change nothing", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made)
    const paused = await at.own("stream-updated", { status: "paused", reason: "too many failures" })
    assert.deepStrictEqual(await one.receive(paused.set), accepted)
    assert.deepInclude(one.notices.at(-1), { kind: "stream", status: "paused", reason: "too many failures" })
    const appended = await at.append(granted("pat"))
    await one.noticed("applied")
    assert.deepInclude(await own.standing(), { position: 1, open: true })
    assert.deepStrictEqual(await one.receive((await at.own("stream-updated", { status: "enabled" })).set), accepted)
    // The receiver is woken from its wait by cursor: the stream now delivers the event that it kept back.
    assert.deepStrictEqual(await one.receive(appended[0]!.set), accepted)
    const [ada] = await at.append(granted("ada"))
    assert.deepStrictEqual(await one.receive(ada!.set), accepted)
    await equal(made)
  })

  it("after a 401 a new access token is requested once; a second 401 closes access", async () => {
    const made = await scene()
    const { at } = made
    let asked = 0
    at.expire(1)
    const one = await opened(made, { token: () => Promise.resolve(`token ${++asked}`) })
    assert.isFalse(one.notices.some(({ kind }) => kind === "retrying"))
    const before = asked
    at.expire(2)
    const [, second] = await at.append(granted("pat"), granted("ada"))
    assert.deepStrictEqual(await one.receive(second!.set), { status: 503, body: null })
    assert.isAtLeast(asked, before + 2)
    await one.noticed("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "refused" })
    await one.noticed("opened", 2)
    await equal(made)
  })

  it("a gap is filled by cursor before the later event is accepted; late events change nothing", async () => {
    const made = await scene()
    const one = await opened(made)
    const appended = await made.at.append(...["a", "b", "c", "d"].map((name) => granted(name)))
    assert.deepStrictEqual(await one.receive(appended[2]!.set), accepted)
    assert.deepStrictEqual(await one.receive(appended[0]!.set), accepted)
    await equal(made)
    // Several at once, in any order.
    const more = await made.at.append(...["e", "f", "g"].map((name) => granted(name)))
    const answers = await Promise.all([2, 0, 1].map((n) => one.receive(more[n]!.set)))
    assert.deepStrictEqual(answers, [accepted, accepted, accepted])
    await equal(made)
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
  })

  it("an event that is never delivered is found by the regular check", async () => {
    const made = await scene()
    const one = await opened(made)
    await made.at.append(granted("pat"))
    made.own.clock.ahead += 61_000
    // Any message wakes the receiver, which then notices that the check is due.
    assert.deepStrictEqual(
      await one.receive((await made.at.own("stream-updated", { status: "enabled" })).set),
      accepted,
    )
    await one.noticed("applied")
    await equal(made)
  })

  it("an event of a new epoch is answered 503 until a snapshot; then also old ones are accepted", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made)
    const old = await at.append(granted("pat"), granted("ada"), revoked("pat"))
    for (const { set } of old) assert.deepStrictEqual(await one.receive(set), accepted)
    at.restart(1)
    const [eve] = await at.append(granted("eve"))
    assert.deepStrictEqual(await one.receive(eve!.set), { status: 503, body: null })
    await one.noticed("opened", 2)
    assert.deepInclude(await own.standing(), { epoch: 2, position: 2, open: true })
    for (const { set } of [...old, eve!]) assert.deepStrictEqual(await one.receive(set), accepted)
    await equal(made)
  })

  it("an event of another history with the right key closes access, also without an Authorization", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made)
    await at.append(granted("pat"))
    const [forked] = chained([granted("eve")], 1, `sha256:${"1".repeat(64)}`, 2)
    assert.deepStrictEqual(await one.receive(await at.key().sign(forked)), { status: 503, body: null })
    await one.noticed("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "gap" })
    await one.noticed("opened", 2)
    await equal(made)
  })

  it("a key is accepted once it is announced, also if the stream did not deliver the announcement", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made, { authorization: secret })
    const next = await keyOf("next")
    const transition = (kid: string): EventInput => ({
      type: ownType("key-transition"),
      subId: { format: "opaque", id: projectId },
      payload: { event_timestamp: now, next: [kid, next.kid], not_before: now },
    })
    const first = at.key()
    const kid = await at.rotate()
    // The old key signs the announcement.
    const [claims] = chained([transition(kid)])
    const announced = await first.sign(claims)
    at.appendSigned(claims!, announced, transition(kid))
    const [pat] = await at.append(granted("pat"))
    assert.deepStrictEqual(await one.receive(pat!.set, secret), accepted)
    assert.deepStrictEqual(await one.receive(announced, secret), accepted)
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
    await equal(made)
  })

  for (const [when, fresh] of [["to a new product", true], ["to a product that has state", false]] as const) {
    it(`killed at each step of a push ${when}, it ends equal once the push is repeated`, async () => {
      const { at, own: first } = await scene()
      await at.append(granted("first"))
      let own = first
      let steps = 0
      for (let dieAt = 1, died = true; died; dieAt++) {
        assert.isBelow(dieAt, 40)
        if (fresh) own = await product(at)
        const [event] = await at.append(dieAt % 3 === 0 ? revoked("p") : granted("p", `access-${dieAt}`))
        steps = 0
        died = false
        const step = () => {
          if (++steps !== dieAt && !died) return
          died = true
          throw new Error("killed")
        }
        const around = async <A>(what: () => Promise<A>): Promise<A> => {
          step()
          const done = await what()
          step()
          return done
        }
        const { store } = own
        const mortal: Store<DatabaseSync> = {
          ...store,
          transact: (work, alongside) => around(() => store.transact(work, alongside)),
        }
        const one = own.start({ fetch: (input, init) => around(() => fetch(input, init)) }, mortal)
        const answer = await one.receive(event!.set)
        await one.end()
        assert.strictEqual(answer.status, died ? 503 : 202, `${dieAt} of ${steps}`)
        const place = await own.standing()
        if (answer.status === 202) assert.strictEqual(place!.position, at.head())
        const again = own.start()
        assert.deepStrictEqual(await again.receive(event!.set), accepted)
        await again.end()
        assert.deepStrictEqual(await own.facts(), at.facts())
      }
      assert.isAtLeast(steps, fresh ? 10 : 4)
    })
  }
})
