/**
 * A stream that keeps none of its promises: messages arrive late, twice, in any order, several at once, from an earlier
 * epoch, or never, while responses get lost and the product's process is killed. At all times the facts are those of
 * the events up to the position, and only committed messages are accepted; in the end the product equals the
 * transmitter.
 */
import fc from "fast-check"
import type { DatabaseSync } from "node:sqlite"
import { assert, it } from "vitest"
import type { Store } from "../../sdk/Store.ts"
import { verifyEvent } from "../../sdk/Verify.ts"
import { runs } from "../support/Runs.ts"
import type { Signed } from "./KitOrigin.ts"
import { scene } from "./Receiving.ts"
import { chained, type EventInput, granted, keyOf, own as ownType, pinsTo, projectId, revoked } from "./Tokens.ts"

const names = ["pat", "ada", "eve"]
const eventInput = (n: number): EventInput =>
  n % 7 === 0
    ? {
      type: ownType("project-owner-changed"),
      subId: { format: "opaque", id: projectId },
      payload: { event_timestamp: n, owner: { person_id: `p${n % 2}`, active: n % 3 !== 0 } },
    }
    : n % 3 === 0
    ? revoked(names[n % names.length]!)
    : granted(names[n % names.length]!, `access-${names[n % names.length]}${n % 2}`)

const pick = fc.nat({ max: 1_000 })
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      what: fc.array(pick, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("push" as const), which: fc.array(pick, { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("newest" as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("die" as const), after: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const), back: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("garbage" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("status" as const),
      status: fc.constantFrom("enabled", "paused", "disabled"),
    }),
  },
)

it("whatever a stream delivers, only committed messages are accepted, and both end equal", async () => {
  const key = await keyOf("transmitter")
  const stranger = await keyOf("stranger")
  const pins = pinsTo([key.kid], [key.jwk])
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 25 }), async (commands) => {
      const made = await scene()
      const { at, own } = made
      const carried: Array<Signed> = []
      let left = Infinity
      const step = () => {
        if (--left <= 0) throw new Error("dead")
      }
      const around = async <A>(what: () => Promise<A>): Promise<A> => {
        step()
        const done = await what()
        step()
        return done
      }
      const mortal: Store<DatabaseSync> = {
        ...own.store,
        transact: (work, alongside) => around(() => own.store.transact(work, alongside)),
      }
      const begin = () => own.start({ fetch: (input, init) => around(() => fetch(input, init)) }, mortal)
      let one = begin()

      const push = async ({ set }: Signed) => {
        const { status } = await one.receive(set)
        if (status !== 202) return
        const { epoch, position } = await verifyEvent(set, pins)
        const place = (await own.standing())!
        assert.isTrue(place.epoch > epoch || place.epoch === epoch && place.position >= position)
      }
      const whole = async () => {
        const place = await own.standing()
        assert.deepStrictEqual(await own.facts(), place === null ? [] : at.facts(place))
      }

      for (const now of commands) {
        switch (now.kind) {
          case "append":
            carried.push(...await at.append(...now.what.map(eventInput)))
            break
          case "push":
            if (carried.length > 0) await Promise.all(now.which.map((n) => push(carried[n % carried.length]!)))
            break
          case "newest":
            if (carried.length > 0) await push(carried.at(-1)!)
            break
          case "die":
            // The process is killed during the next push, and a new one starts.
            left = now.after
            if (carried.length > 0) await push(carried.at(-1)!)
            left = Infinity
            await one.end()
            one = begin()
            break
          case "restore":
            at.restart(Math.max(0, at.head() - now.back))
            break
          case "garbage": {
            const [forged] = chained([granted("mallory")], at.epoch(), undefined, at.head() + 1)
            assert.notStrictEqual((await one.receive(await stranger.sign(forged, { kid: key.kid }))).status, 202)
            break
          }
          case "status":
            await one.receive((await at.own("stream-updated", { status: now.status })).set)
            break
        }
        await whole()
      }
      await one.end()
      const [last] = await at.append(granted("pat"))
      const survivor = own.start()
      survivor.begin()
      while ((await survivor.receive(last!.set)).status !== 202);
      if (!(await own.standing())!.open) await survivor.noticed("opened")
      assert.deepStrictEqual(await own.facts(), at.facts())
      assert.deepInclude(await own.standing(), { epoch: at.epoch(), position: at.head(), open: true })
      await survivor.end()
      at.end()
    }),
    { numRuns: runs(40) },
  )
}, 120_000)
