/** The suite that every store passes: what is applied, what is refused, and the gate's decisions. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { genesis, type Json } from "../../sdk/Canonical.ts"
import { stage } from "../../sdk/EntryTable.ts"
import { entriesOf, type StateEntry } from "../../sdk/EventProjection.ts"
import { type Entry, gate, type SessionSigns } from "../../sdk/Gate.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { Gap } from "../../sdk/Refusal.ts"
import { ask, type Store } from "../../sdk/Store.ts"
import { type VerifiedEvent, type VerifiedSnapshot, verifyEvent, verifySnapshot } from "../../sdk/Verify.ts"
import { accessEvents, entries, withdrawn } from "./Entries.ts"
import {
  chained,
  type EventInput,
  granted,
  makeKey,
  now,
  own,
  pinsTo,
  projectId,
  revoked,
  snapshotOf,
} from "./Tokens.ts"

const key = await makeKey()
const pins = pinsTo([key.kid], [key.jwk])

const events = async (
  inputs: ReadonlyArray<EventInput>,
  ...rest: readonly [epoch?: number, prev?: string, first?: number]
) => await Promise.all(chained(inputs, ...rest).map(async (claims) => verifyEvent(await key.sign(claims), pins)))

const empty = { people: [], access: [], sessions_floor: [], sessions: [], identities: [], project: null, keys: null }

const snapshot = async (
  at: { readonly epoch?: number; readonly position: number; readonly chainHead: string },
  state: { readonly [group: string]: Json } = empty,
  keySet = [key.kid],
): Promise<VerifiedSnapshot> =>
  verifySnapshot(
    await key.sign(snapshotOf(state, at, keySet), { typ: "lifecycle-snapshot+jwt" }),
    projectId,
    pins,
  )

const start = () => snapshot({ position: 0, chainHead: genesis })

const gapOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => null, (error) => error)
  assert.instanceOf(error, Gap)
  return (error as Gap).message
}

export interface StoreUnderTest<Tx> {
  readonly store: Store<Tx>
  /** Runs a statement of the product in the transaction. */
  readonly write: (tx: Tx, text: string) => void | Promise<void>
  readonly end: () => Promise<void>
}

/** Registers the suite for one store. */
export const conformance = <Tx>(name: string, make: () => Promise<StoreUnderTest<Tx>>) =>
  describe(name, () => {
    let tested: StoreUnderTest<Tx>
    const store = () => tested.store
    beforeAll(async () => {
      tested = await make()
      await tested.store.prepare()
      await tested.store.prepare()
      await store().transact(() => ask("create table own (note text primary key)"))
    })
    afterAll(() => tested.end())

    const swap = (to: VerifiedSnapshot) => store().transact(() => Ledger.swap(projectId, to))
    const apply = (some: ReadonlyArray<VerifiedEvent>) => store().transact(() => Ledger.apply(projectId, some))
    const standing = () => store().read(() => Ledger.standing(projectId))
    const facts = () => store().read(() => Ledger.facts(projectId))
    const idsOf = (of: ReadonlyArray<StateEntry>) => of.map(({ group, id }) => `${group} ${id}`)
    const fresh = async () => {
      await store().transact(() => Ledger.forget(projectId))
      await swap(await start())
    }
    const open = async () => {
      const at = await standing()
      return store().transact(() => Ledger.open(projectId, at!))
    }
    const mayEnter = (subject: string, session: SessionSigns = { sessionIssuedAt: now + 10 }) =>
      gate(store(), projectId).mayEnter("https://id.example", subject, session)
    const because = (entry: Entry) => entry.may ? "admitted" : entry.because

    it("has no standing before the first snapshot, and then the snapshot's position with access closed", async () => {
      await store().transact(() => Ledger.forget(projectId))
      assert.isNull(await standing())
      assert.strictEqual(because(await mayEnter("pat")), "closed")
      await gapOf(apply(await events([granted("pat")])))
      await swap(await start())
      assert.deepStrictEqual(await standing(), {
        epoch: 1,
        position: 0,
        cursor: "c0",
        chainHead: genesis,
        open: false,
        closedBecause: "catching_up",
        pins: [key.kid],
      })
    })

    it("applies each following event once; position, cursor and chain head are those of the last one", async () => {
      await fresh()
      const verified = await events([granted("pat"), granted("ada"), revoked("pat")])
      assert.lengthOf(await apply(verified.slice(0, 2)), 2)
      assert.deepInclude(await standing(), { position: 2, cursor: "c2", chainHead: verified[1]!.digest })
      assert.lengthOf(await apply(verified.slice(0, 2)), 0)
      assert.deepInclude(await standing(), { position: 2, cursor: "c2" })
      assert.lengthOf(await apply(verified), 1)
      assert.lengthOf(await apply(verified.slice(0, 1)), 0)
      assert.deepInclude(await standing(), { position: 3, cursor: "c3", chainHead: verified[2]!.digest })
      assert.deepStrictEqual(idsOf(await facts()), ["access access-ada"])
    })

    it("a page gives the same state as its events one by one, also if they change a fact many times", async () => {
      const names = ["pat", "ada", "bo"]
      const verified = await events(Array.from({ length: 450 }, (_, n) => {
        const name = `${names[n % 3]}-${n % 7}`
        return n % 5 < 3 ? granted(name, `access-${n % 11}`) : revoked(name)
      }))
      await fresh()
      for (const one of verified) assert.lengthOf(await apply([one]), 1)
      const expected = [await facts(), await standing()]
      assert.isAbove((await facts()).length, 0)
      await fresh()
      assert.lengthOf(await apply(verified), 450)
      assert.deepStrictEqual([await facts(), await standing()], expected)
    })

    it("an event with a known jti changes nothing, in the same page or a later one", async () => {
      await fresh()
      const [first, second, third] = await events([granted("pat"), revoked("pat"), revoked("pat")])
      const again = { ...second!, jti: first!.jti }
      assert.deepStrictEqual(await apply([first!, again]), [first!])
      assert.deepStrictEqual(await apply([{ ...third!, jti: first!.jti }]), [])
      assert.deepInclude(await standing(), { position: 3 })
      assert.deepStrictEqual(idsOf(await facts()), ["access access-pat"])
    })

    it("refuses a page with a gap, another epoch or another history as a whole", async () => {
      await fresh()
      const verified = await events([granted("a"), granted("b"), granted("c")])
      const other = await events([granted("z"), granted("b")])
      assert.match(await gapOf(apply([verified[0]!, verified[2]!])), /position 3 after 1/)
      assert.match(await gapOf(apply([verified[0]!, other[1]!])), /another history/)
      assert.match(await gapOf(apply(await events([granted("a")], 2))), /epoch 2 after 1/)
      assert.deepInclude(await standing(), { position: 0, chainHead: genesis })
      assert.deepStrictEqual(await facts(), [])
    })

    it("a state staged in parts replaces everything once all parts are staged", async () => {
      await fresh()
      await apply(await events([granted("old")]))
      const at = await snapshot({ position: 5, chainHead: `sha256:${"5".repeat(64)}` })
      const many = entriesOf({
        access: Array.from({ length: 450 }, (_, n) => ({
          access_id: `a-${n}`,
          version: 1,
          role: "user",
          user: { format: "iss_sub", iss: "https://id.example", sub: `p-${n}` },
        })),
      })
      const stageSome = (some: ReadonlyArray<StateEntry>) => store().transact(() => stage(projectId, at, some))
      assert.strictEqual(await stageSome(many.slice(0, 300)), 300)
      // Facts that are staged twice count once.
      assert.strictEqual(await stageSome(many.slice(250)), 150)
      await gapOf(store().transact(() => Ledger.swapStaged(projectId, at, 451)))
      assert.deepStrictEqual(idsOf(await facts()), ["access access-old"])
      assert.deepInclude(await standing(), { position: 1 })
      await store().transact(() => Ledger.swapStaged(projectId, at, 450))
      assert.sameMembers(idsOf(await facts()), idsOf(many))
      assert.deepInclude(await standing(), { position: 5, open: false })
      assert.deepStrictEqual(await store().read(() => ask("select about from bailiwick_staged")), [])
      await open()
      assert.strictEqual(because(await mayEnter("p-7")), "admitted")
      assert.strictEqual(because(await mayEnter("old")), "no_access")
    })

    it("commits the product's own changes with the events, or neither", async () => {
      await fresh()
      const verified = await events([granted("a"), granted("b")])
      const notes = () => store().read(() => ask("select note from own order by note"))
      const work = () => Ledger.apply(projectId, verified)
      await store().transact(work, (done, tx) => tested.write(tx, `insert into own values ('${done.length} new')`))
      assert.deepStrictEqual((await notes()).map(({ note }) => note), ["2 new"])
      const more = await events([granted("c")], 1, verified[1]!.digest, 3)
      const failing = store().transact(() => Ledger.apply(projectId, more), (_, tx) => {
        const wrote = tested.write(tx, "insert into own values ('lost')")
        if (wrote === undefined) throw new Error("the product failed")
        return wrote.then(() => Promise.reject(new Error("the product failed")))
      })
      assert.strictEqual(await failing.then(() => "", ({ message }) => message), "the product failed")
      assert.deepStrictEqual((await notes()).map(({ note }) => note), ["2 new"])
      assert.deepInclude(await standing(), { position: 2, cursor: "c2" })
    })

    it("a snapshot replaces everything; an older one is refused; one of a new epoch is not", async () => {
      await fresh()
      const verified = await events([granted("a"), granted("b")])
      await apply(verified)
      assert.isTrue(await open())
      const user = { format: "iss_sub", iss: "https://id.example", sub: "pat" }
      const state = { ...empty, access: [{ user, access_id: "x", version: 1, role: "user" }] }
      const digest = (digit: string) => `sha256:${digit.repeat(64)}`
      await gapOf(swap(await snapshot({ position: 1, chainHead: verified[0]!.digest }, state)))
      assert.deepInclude(await standing(), { position: 2, open: true })
      await swap(await snapshot({ position: 9, chainHead: digest("9") }, state, ["k1", "k2"]))
      assert.deepStrictEqual(idsOf(await facts()), ["access x"])
      assert.deepInclude(await standing(), { position: 9, open: false, pins: ["k1", "k2"] })
      await swap(await snapshot({ epoch: 2, position: 3, chainHead: digest("a") }, empty))
      assert.deepInclude(await standing(), { epoch: 2, position: 3, pins: [key.kid] })
      assert.deepStrictEqual(await facts(), [])
      await gapOf(swap(await snapshot({ position: 99, chainHead: digest("9") }, state)))
      // A thousand facts are replaced at once.
      const access = Array.from({ length: 1_001 }, (_, i) => ({ user, access_id: `a${i}`, version: 1, role: "user" }))
      await swap(await snapshot({ epoch: 2, position: 4, chainHead: digest("b") }, { ...empty, access }))
      assert.lengthOf(await facts(), 1_001)
    })

    it("keys that an event announces are pinned with its commit", async () => {
      await fresh()
      const transition: EventInput = {
        type: own("key-transition"),
        subId: { format: "opaque", id: projectId },
        payload: { event_timestamp: now, next: ["next-1", "next-2"], not_before: now + 60 },
      }
      await apply(await events([transition]))
      assert.deepStrictEqual((await standing())!.pins, [key.kid, "next-1", "next-2"].sort())
    })

    it("opens only if no event was applied meanwhile", async () => {
      await fresh()
      const before = await standing()
      await apply(await events([granted("a")]))
      assert.isFalse(await store().transact(() => Ledger.open(projectId, before!)))
      assert.isTrue(await open())
    })

    it("decides whom the gate admits", async () => {
      await fresh()
      await apply(await events(accessEvents))
      assert.strictEqual(because(await mayEnter("pat")), "closed")
      assert.isTrue(await open())
      for (const [subject, session, expected] of entries) {
        const entry = await mayEnter(subject, session)
        assert.strictEqual(because(entry), expected, `${subject} ${JSON.stringify(session)}`)
      }
      const entry = await mayEnter("second")
      assert.deepStrictEqual(entry, { may: true, accessId: "access-first", role: "user" })
      assert.strictEqual(because(await gate(store(), "another").mayEnter("https://id.example", "pat")), "closed")
      assert.strictEqual(
        because(await gate(store(), projectId).mayEnter("https://evil.example", "pat")),
        "no_access",
      )
      await store().transact(() => Ledger.close(projectId, "refused"))
      assert.strictEqual(because(await mayEnter("pat")), "closed")
      assert.deepInclude(await standing(), { open: false, closedBecause: "refused" })
      assert.isTrue(await open())
      const { chainHead, position } = (await standing())!
      await apply(await events([withdrawn], 1, chainHead, position + 1))
      assert.strictEqual(because(await mayEnter("pat")), "project_withdrawn")
    })

    it("has views of accesses, people and session floors for the product's own queries", async () => {
      await fresh()
      await apply(await events([granted("pat"), granted("ada")]))
      const rows = await store().read(() =>
        ask("select access_id, subject, role from bailiwick_accesses where project_id = $1 order by subject", projectId)
      )
      assert.deepStrictEqual(rows.map((row) => ({ ...row })), [
        { access_id: "access-ada", subject: "ada", role: "user" },
        { access_id: "access-pat", subject: "pat", role: "user" },
      ])
      for (const view of ["bailiwick_people", "bailiwick_session_floors"]) {
        assert.deepStrictEqual(await store().read(() => ask(`select * from ${view}`)), [])
      }
    })

    it("processes of a product that apply the same page at once apply it once", async () => {
      await fresh()
      const verified = await events(Array.from({ length: 20 }, (_, i) => granted(`p${i}`)))
      const done = await Promise.all([apply(verified), apply(verified), apply(verified.slice(0, 10))])
      assert.strictEqual(done.flat().length, 20)
      assert.deepInclude(await standing(), { position: 20, cursor: "c20" })
    })
  })
