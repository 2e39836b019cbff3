/**
 * A product that receives by a stream. The names are those of the receiver modules of the OpenID conformance suite (Shared
 * Signals Framework), rebuilt: invalid SET, issuer mismatch, redelivered SET, removed subject, verification (wrong state,
 * wrong subject, behind queued events, unsolicited), status changed by the transmitter, access-token expiry.
 */
import type { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "vitest"
import type { Answer } from "../../sdk/Receive.ts"
import { genesis } from "../../sdk/Canonical.ts"
import type { Store } from "../../sdk/Store.ts"
import { streamId } from "./KitOrigin.ts"
import { equal, opened, product, scene } from "./Receiving.ts"
import { chained, granted, keyOf, now, own as ownType, personNamed, projectId, revoked, type Told } from "./Tokens.ts"

const secret = "Bearer of the stream"

const taken: Answer = { status: 202, body: null }

describe("receive", () => {
  it("a message is committed before it is answered for, and acknowledged by cursor after that", async () => {
    const made = await scene()
    const { at, own } = made
    await at.tell(granted("pat"))
    const one = await opened(made)
    const [ada] = await at.tell(granted("ada"))
    assert.deepStrictEqual(await one.receive(ada!.set), taken)
    assert.deepInclude(await own.standing(), { position: 2, open: true })
    await at.watch.until(() => at.acknowledged.at(-1) === "c2")
    await equal(made)
    // What opened it was the cursor; the event came by the stream alone.
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "applied"), 1)
  })

  it("a SET that is delivered again is accepted and changes nothing", async () => {
    const made = await scene()
    const one = await opened(made)
    const told = await made.at.tell(granted("pat"), revoked("pat"), granted("ada"))
    for (const { set } of told) assert.deepStrictEqual(await one.receive(set), taken)
    for (const { set } of [...told, ...told].reverse()) assert.deepStrictEqual(await one.receive(`${set}\n`), taken)
    await equal(made)
    assert.lengthOf(one.notices.filter(({ kind }) => kind === "applied"), 3)
  })

  it("an invalid SET is refused with RFC 8935's error, and changes nothing; who nobody knows closes nothing", async () => {
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
    // It may be a key that was announced just now; but nobody makes it look all the time.
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

  it("who has not the stream's Authorization is not listened to; who has it and cannot be believed closes access", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made, { authorization: secret })
    const [pat] = await at.tell(granted("pat"))
    for (const presented of [undefined, "", "Bearer of another stream"]) {
      assert.deepInclude(await one.receive(pat!.set, presented), { status: 400 })
    }
    assert.deepInclude(await own.standing(), { position: 0, open: true })
    assert.deepStrictEqual(await one.receive(pat!.set, secret), taken)

    const stranger = await keyOf("stranger")
    const [forged] = chained([granted("eve")], 1, genesis, 2)
    const answer = await one.receive(await stranger.sign(forged), secret)
    assert.strictEqual(answer.body?.err, "invalid_key")
    await one.said("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "invalid_key" })
    // The history itself is as it was: a snapshot says so.
    await one.said("opened", 2)
    await equal(made)
  })

  it("an event about somebody whom nobody asked for, or of a type of later days, is tolerated", async () => {
    const made = await scene()
    const one = await opened(made)
    const later: Told = {
      type: ownType("of-later-days"),
      subId: personNamed("nobody"),
      payload: { event_timestamp: now },
    }
    const email: Told = { ...later, subId: { format: "email", email: "removed@example.com" } }
    for (const { set } of await made.at.tell(revoked("removed"), later, email, granted("pat"))) {
      assert.deepStrictEqual(await one.receive(set), taken)
    }
    await equal(made)
  })

  it("verification: what was asked for, what was not, wrong state, wrong subject, behind queued events", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made, { authorization: secret })
    const receive = ({ set }: { readonly set: string }) => one.receive(set, secret)
    await one.verify()
    const state = at.verifications.at(-1)!
    const events = await at.tell(granted("pat"), granted("ada"))
    const verification = await at.own("verification", { state })
    // Behind two events that are still to come, and before them.
    assert.deepStrictEqual(await receive(verification), taken)
    for (const event of events) assert.deepStrictEqual(await receive(event), taken)
    assert.deepStrictEqual(await receive(verification), taken)
    assert.deepStrictEqual(await receive(await at.own("verification", {})), taken)
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

  it("while the transmitter has stopped the stream the cursor goes on alone", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made)
    const paused = await at.own("stream-updated", { status: "paused", reason: "too many failures" })
    assert.deepStrictEqual(await one.receive(paused.set), taken)
    assert.deepInclude(one.notices.at(-1), { kind: "stream", status: "paused", reason: "too many failures" })
    const told = await at.tell(granted("pat"))
    await one.said("applied")
    assert.deepInclude(await own.standing(), { position: 1, open: true })
    assert.deepStrictEqual(await one.receive((await at.own("stream-updated", { status: "enabled" })).set), taken)
    // It is awake in the middle of a wait by cursor: what held the stream up comes now.
    assert.deepStrictEqual(await one.receive(told[0]!.set), taken)
    const [ada] = await at.tell(granted("ada"))
    assert.deepStrictEqual(await one.receive(ada!.set), taken)
    await equal(made)
  })

  it("an access token that ends on the way is asked for once more; one that stays refused closes access", async () => {
    const made = await scene()
    const { at } = made
    let asked = 0
    at.expire(1)
    const one = await opened(made, { token: () => Promise.resolve(`token ${++asked}`) })
    assert.isFalse(one.notices.some(({ kind }) => kind === "retrying"))
    const before = asked
    at.expire(2)
    const [, second] = await at.tell(granted("pat"), granted("ada"))
    assert.deepStrictEqual(await one.receive(second!.set), { status: 503, body: null })
    assert.isAtLeast(asked, before + 2)
    await one.said("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "refused" })
    await one.said("opened", 2)
    await equal(made)
  })

  it("what did not come is filled in by cursor before what came is answered for; the late one changes nothing", async () => {
    const made = await scene()
    const one = await opened(made)
    const told = await made.at.tell(...["a", "b", "c", "d"].map((name) => granted(name)))
    assert.deepStrictEqual(await one.receive(told[2]!.set), taken)
    assert.deepStrictEqual(await one.receive(told[0]!.set), taken)
    await equal(made)
    // Several at once, in no order.
    const more = await made.at.tell(...["e", "f", "g"].map((name) => granted(name)))
    const answers = await Promise.all([2, 0, 1].map((n) => one.receive(more[n]!.set)))
    assert.deepStrictEqual(answers, [taken, taken, taken])
    await equal(made)
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
  })

  it("what never comes is found by looking", async () => {
    const made = await scene()
    const one = await opened(made)
    await made.at.tell(granted("pat"))
    made.own.clock.ahead += 61_000
    // Anything that wakes it lets it see what time it is.
    assert.deepStrictEqual(await one.receive((await made.at.own("stream-updated", { status: "enabled" })).set), taken)
    await one.said("applied")
    await equal(made)
  })

  it("another epoch is another history: a snapshot first; what is left of the old one is answered for", async () => {
    const made = await scene()
    const { at, own } = made
    const one = await opened(made)
    const old = await at.tell(granted("pat"), granted("ada"), revoked("pat"))
    for (const { set } of old) assert.deepStrictEqual(await one.receive(set), taken)
    at.restart(1)
    const [eve] = await at.tell(granted("eve"))
    assert.deepStrictEqual(await one.receive(eve!.set), { status: 503, body: null })
    await one.said("opened", 2)
    assert.deepInclude(await own.standing(), { epoch: 2, position: 2, open: true })
    for (const { set } of [...old, eve!]) assert.deepStrictEqual(await one.receive(set), taken)
    await equal(made)
  })

  it("an event of another history under the right key closes access, whoever sent it", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made)
    await at.tell(granted("pat"))
    const [forked] = chained([granted("eve")], 1, `sha256:${"1".repeat(64)}`, 2)
    assert.deepStrictEqual(await one.receive(await at.key().sign(forked)), { status: 503, body: null })
    await one.said("closed")
    assert.deepInclude(one.notices.find(({ kind }) => kind === "closed"), { because: "gap" })
    await one.said("opened", 2)
    await equal(made)
  })

  it("a key is believed from the commit of its announcement on, even where the announcement did not come", async () => {
    const made = await scene()
    const { at } = made
    const one = await opened(made, { authorization: secret })
    const next = await keyOf("next")
    const transition = (kid: string): Told => ({
      type: ownType("key-transition"),
      subId: { format: "opaque", id: projectId },
      payload: { event_timestamp: now, next: [kid, next.kid], not_before: now },
    })
    const first = at.key()
    const kid = await at.rotate()
    // The announcement is the old key's own word.
    const [claims] = chained([transition(kid)])
    const announced = await first.sign(claims)
    at.tellSigned(claims!, announced, transition(kid))
    const [pat] = await at.tell(granted("pat"))
    assert.deepStrictEqual(await one.receive(pat!.set, secret), taken)
    assert.deepStrictEqual(await one.receive(announced, secret), taken)
    assert.isFalse(one.notices.some(({ kind }) => kind === "closed"))
    await equal(made)
  })

  for (const [when, fresh] of [["that is the first it hears", true], ["among others", false]] as const) {
    it(`killed at every step of a push ${when}, it ends equal once the push is repeated`, async () => {
      const { at, own: first } = await scene()
      await at.tell(granted("first"))
      let own = first
      let steps = 0
      for (let dieAt = 1, died = true; died; dieAt++) {
        assert.isBelow(dieAt, 40)
        if (fresh) own = await product(at)
        const [event] = await at.tell(dieAt % 3 === 0 ? revoked("p") : granted("p", `access-${dieAt}`))
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
        assert.deepStrictEqual(await again.receive(event!.set), taken)
        await again.end()
        assert.deepStrictEqual(await own.facts(), at.facts())
      }
      assert.isAtLeast(steps, fresh ? 10 : 4)
    })
  }
})
