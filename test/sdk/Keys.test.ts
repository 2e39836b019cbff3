/** How a product handles keys: announced, switched, missed, stolen and unknown ones. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { DatabaseSync } from "node:sqlite"
import { genesis } from "../../sdk/Canonical.ts"
import type { Notice } from "../../sdk/Follow.ts"
import { keyCache } from "../../sdk/Keys.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { Refusal } from "../../sdk/Refusal.ts"
import { sqliteStore } from "../../sdk/stores/Sqlite.ts"
import { type VerifiedEvent, verifyEvent, verifySnapshot } from "../../sdk/Verify.ts"
import { KeyRotation, type Standings } from "../../services/lifecycle/KeyRotation.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { Server } from "../../src/http/Server.ts"
import { access, person } from "../support/TestIdentity.ts"
import { grant, type Scene } from "../services/lifecycle/LifecycleFixture.ts"
import {
  chained,
  type EventInput,
  granted,
  makeKey,
  now,
  own,
  personNamed,
  pinsTo,
  projectId,
  type SigningKey,
  snapshotOf,
} from "./Tokens.ts"
import { fixture, product, scene, stateNow } from "./KitFixture.ts"

const [first, second, third, rogue] = await Promise.all([makeKey(), makeKey(), makeKey(), makeKey()])
const served = [first, second, third, rogue].map(({ jwk }) => jwk)

const transition = (payload: EventInput["payload"]): EventInput => ({
  type: own("key-transition"),
  subId: personNamed("nobody"),
  payload: { event_timestamp: now, initiating_entity: "admin", ...payload },
})

const refusalOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => null, (error) => error)
  assert.instanceOf(error, Refusal)
  return (error as Refusal).step
}

/** A history in which each event has its own signing key; all of these keys count as pinned here. */
const history = (
  ...signed: ReadonlyArray<readonly [SigningKey, EventInput]>
): Promise<ReadonlyArray<VerifiedEvent>> => {
  const pins = pinsTo(signed.map(([key]) => key.kid), served)
  const claims = chained(signed.map(([, event]) => event))
  return Promise.all(signed.map(async ([key], i) => verifyEvent(await key.sign(claims[i]!), pins)))
}

/** A product that pinned these keys. */
const pinned = async (...keys: ReadonlyArray<SigningKey>) => {
  const store = sqliteStore(new DatabaseSync(":memory:"))
  await store.prepare()
  const state = { people: [], access: [], sessions_floor: [], sessions: [], identities: [], project: null, keys: null }
  const token = await first.sign(
    snapshotOf(state, { position: 0, chainHead: genesis }, keys.map(({ kid }) => kid)),
    { typ: "lifecycle-snapshot+jwt" },
  )
  const snapshot = await verifySnapshot(token, projectId, pinsTo([first.kid], served))
  await store.transact(() => Ledger.swap(projectId, snapshot))
  return {
    apply: (events: ReadonlyArray<VerifiedEvent>) => store.transact(() => Ledger.apply(projectId, events)),
    pins: async () => (await store.read(() => Ledger.standing(projectId)))!.pins,
    position: async () => (await store.read(() => Ledger.standing(projectId)))!.position,
  }
}

const sorted = (...keys: ReadonlyArray<SigningKey>) => keys.map(({ kid }) => kid).sort()

describe("keys of a product", () => {
  it("a key is accepted by its pinned thumbprint only: not for being served, nor under another's kid", async () => {
    const [claims] = chained([granted("pat")])
    const pins = pinsTo([first.kid, second.kid], [first.jwk, rogue.jwk])
    assert.strictEqual((await verifyEvent(await first.sign(claims), pins)).kid, first.kid)
    assert.strictEqual(await refusalOf(verifyEvent(await rogue.sign(claims), pins)), "kid")
    assert.strictEqual(await refusalOf(verifyEvent(await second.sign(claims), pins)), "key")
    // Served with another key's kid.
    const disguised = pinsTo([first.kid], [{ ...rogue.jwk, kid: first.kid }])
    assert.strictEqual(await refusalOf(verifyEvent(await rogue.sign(claims, { kid: first.kid }), disguised)), "key")
  })

  it("a key that is no longer served is accepted for ten minutes at most", async () => {
    let [at, asked] = [0, 0]
    let keys = [first.jwk]
    const cache = keyCache(() => {
      asked++
      return Promise.resolve({ keys })
    }, () => at)([first.kid])
    await cache.key(first.kid)
    keys = []
    at = 600_000
    await cache.key(first.kid)
    assert.strictEqual(asked, 1)
    at++
    assert.strictEqual(await refusalOf(cache.key(first.kid)), "key")
  })

  it("an announced key is pinned and may sign later events of the page; another key is refused", async () => {
    const { apply, pins, position } = await pinned(first)
    const events = await history(
      [first, granted("a")],
      [first, transition({ next: [second.kid, third.kid], not_before: now })],
      [second, transition({ next: [third.kid, "later"] })],
      [second, granted("b")],
      [rogue, granted("c")],
    )
    assert.lengthOf(await apply(events.slice(0, 4)), 4)
    assert.deepStrictEqual(await pins(), [...sorted(first, second, third), "later"].sort())
    assert.strictEqual(await refusalOf(apply(events)), "kid")
    assert.strictEqual(await position(), 4)
    const ahead = await pinned(first)
    assert.strictEqual(await refusalOf(ahead.apply(await history([second, granted("a")]))), "kid")
  })

  it("a stolen key and the keys that it announced are unpinned; the stolen key cannot report itself", async () => {
    const { apply, pins, position } = await pinned(first, second, third)
    const events = await history(
      [first, transition({ next: [second.kid, rogue.kid] })],
      [second, transition({ compromised: first.kid, next: [third.kid, "later"] })],
      [second, granted("a")],
      [first, granted("b")],
    )
    await apply(events.slice(0, 1))
    assert.include(await pins(), rogue.kid)
    await apply(events.slice(1, 3))
    assert.deepStrictEqual(await pins(), [...sorted(second, third), "later"].sort())
    assert.strictEqual(await refusalOf(apply(events.slice(3))), "kid")
    assert.strictEqual(await position(), 3)
    const other = await pinned(first, second)
    const itself = await history([first, transition({ compromised: first.kid, next: [rogue.kid, third.kid] })])
    assert.strictEqual(await refusalOf(other.apply(itself)), "kid")
  })
})

const opened = (notices: ReadonlyArray<Notice>) => notices.some(({ kind }) => kind === "opened")
const rotating = KeyRotation.layer({ deadlineMillis: 14 * 86_400_000 }).pipe(Layer.provideMerge(fixture))

const change = ({ institution, project }: Scene) =>
  Effect.flatMap(person(), (who) => access(institution, project, who, { id: randomUUID() }))

type Product = Effect.Success<ReturnType<typeof product>>

/** Whether all events are applied, access is open, and the transmitter has the acknowledgement. */
const settled = ({ standing }: Product, head: number) => async (_: unknown, acknowledged: string) => {
  const place = await Effect.runPromise(standing)
  return place !== null && place.open && place.position >= head && place.cursor === acknowledged
}

/** Follows up to the head; returns the kinds of its notices. */
const upToDate = Effect.fnUntraced(function* (made: Scene, own: Product) {
  const { position } = yield* stateNow(made)
  const { notices } = yield* own.run({ until: settled(own, position) })
  assert.deepStrictEqual(yield* own.facts, (yield* stateNow(made)).facts)
  return notices.map((notice) => notice.kind === "closed" ? notice.because : notice.kind)
})

/** The kids that an address serves. */
const servedAt = Effect.fnUntraced(function* (path: string) {
  const { url } = yield* Server
  const set = yield* Effect.promise(async () => await (await fetch(new URL(path, url))).json())
  return (set as { readonly keys: ReadonlyArray<{ readonly kid: string }> }).keys.map(({ kid }) => kid)
})

layer(rotating, { excludeTestServices: true, timeout: "2 minutes" })("a product through changes of keys", (it) => {
  it.effect("following needs no snapshot, being away needs one, a theft needs one for both; both end equal", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const absent = { ...made, asking: { ...made.asking, clientId: `absent-${made.project}` } }
      yield* grant(made, absent.asking.clientId)
      const [follows, away] = [yield* product(made), yield* product(absent)]
      yield* follows.run({ until: opened })
      yield* away.run({ until: opened })
      yield* upToDate(made, away)
      const rotation = yield* KeyRotation
      const [first, next, after] = yield* (yield* SigningKeys).keySet
      assert.deepStrictEqual(yield* servedAt("/v1/lifecycle/jwks"), [first])
      const oidc = yield* servedAt("/dev/issuer/jwks")
      const moved = Effect.andThen(rotation.advance, rotation.list)
      const until = (done: (list: Standings) => boolean) => Effect.repeat(moved, { until: done })

      yield* rotation.announce(0)
      yield* until(({ keys }) => keys.some(({ kid, state }) => kid === next && state === "published"))
      assert.deepStrictEqual(yield* upToDate(made, follows), ["applied"])
      yield* rotation.advance
      const { transition } = yield* rotation.list
      assert.deepStrictEqual(
        transition!.waiting.map(({ consumers }) => consumers),
        [[`${absent.asking.issuer} ${absent.asking.clientId}`]],
      )
      yield* rotation.activate({ force: true })
      yield* until((list) => list.transition === null)
      yield* change(made)
      assert.notInclude(yield* upToDate(made, follows), "snapshot")
      assert.deepStrictEqual(yield* upToDate(made, away), ["cursor_expired", "retrying", "snapshot", "opened"])
      assert.includeMembers([...(yield* away.standing)!.pins], [next!, after!])

      yield* rotation.compromise(next!, "found in a log")
      yield* until(({ keys }) => keys.every(({ kid, projects }) => kid !== next || projects === 0))
      yield* change(made)
      for (const own of [follows, away]) {
        assert.deepStrictEqual(yield* upToDate(made, own), ["cursor_expired", "retrying", "snapshot", "opened"])
        const { pins } = (yield* own.standing)!
        assert.notInclude(pins, next!)
        assert.include(pins, after!)
      }
      // The keys of access and ID tokens are separate and did not change.
      assert.includeMembers(yield* servedAt("/v1/lifecycle/jwks"), [after!])
      assert.notInclude(yield* servedAt("/v1/lifecycle/jwks"), next)
      assert.deepStrictEqual(yield* servedAt("/dev/issuer/jwks"), oidc)
      const { keys } = yield* rotation.list
      assert.notIncludeMembers(keys.map(({ kid }) => kid), oidc)
    }))
})
