import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { randomUUID } from "node:crypto"
import { gate } from "../../sdk/Gate.ts"
import type { Notice } from "../../sdk/Follow.ts"
import * as Ledger from "../../sdk/Ledger.ts"
import { ask } from "../../sdk/Store.ts"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { run } from "../../services/platform/database/UnitOfWork.ts"
import { access, issuer, link, person } from "../support/TestIdentity.ts"
import type { Scene } from "../services/lifecycle/LifecycleFixture.ts"
import { everything, grant, pinsFor } from "../services/lifecycle/LifecycleFixture.ts"
import { fixture, product, scene, sorted, stateNow } from "./KitFixture.ts"
import { changesOf, type StateEntry } from "../../sdk/EventProjection.ts"
import { verifyEvent } from "../../sdk/Verify.ts"

const opened = (notices: ReadonlyArray<Notice>) => notices.some(({ kind }) => kind === "opened")
const closedBy = (because: string) => (notices: ReadonlyArray<Notice>) =>
  notices.some((notice) => notice.kind === "closed" && notice.because === because)

/** One person gets Access; another gets it and loses it. */
const change = Effect.fnUntraced(function* ({ institution, project }: Scene) {
  const [one, other] = [yield* person(), yield* person()]
  const id = randomUUID()
  yield* access(institution, project, one)
  yield* access(institution, project, other, { id })
  yield* access(institution, project, other, { id, version: 2, state: "revoked" })
})

type Product = Effect.Success<ReturnType<typeof product>>

/** Whether all events are applied, access is open, and the transmitter has the acknowledgement. */
const settled = ({ standing }: Product, head: number) => async (_: unknown, acknowledged: string) => {
  const place = await Effect.runPromise(standing)
  return place !== null && place.open && place.position === head && place.cursor === acknowledged
}

layer(fixture, { excludeTestServices: true })("follow", (it) => {
  it.effect(
    "killed at each step in turn, its facts fit its position, and it ends equal to the transmitter",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const own = yield* product(made)
        let ran = { steps: 0, killed: true, acknowledged: "" }
        let deepest = 0
        for (let dieAt = 1; ran.killed; dieAt++) {
          assert.isBelow(dieAt, 60)
          yield* change(made)
          const { position: head } = yield* stateNow(made)
          ran = yield* own.run({ dieAt, until: settled(own, head) })
          deepest = Math.max(deepest, ran.steps)
          // Wherever it was killed: no facts without a standing, and at the head the head's facts.
          const place = yield* own.standing
          if (place === null) {
            assert.deepStrictEqual(yield* own.facts, [])
            continue
          }
          const { facts, position } = yield* stateNow(made)
          if (place.position === position) assert.deepStrictEqual(yield* own.facts, facts)
        }
        assert.isAbove(deepest, 8)

        const last = yield* stateNow(made)
        assert.deepStrictEqual(yield* own.facts, last.facts)
        const place = yield* own.standing
        assert.deepInclude(place, { open: true, position: last.position })
        const { items } = yield* everything(made.asking)
        assert.lengthOf(items, last.position)
      }),
    120_000,
  )

  it.effect(
    "killed while it applies events, its facts are those of the events up to its position",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const own = yield* product(made)
        yield* own.run({ until: opened })
        for (let dieAt = 1; dieAt <= 7; dieAt++) {
          yield* change(made)
          const { position: head } = yield* stateNow(made)
          yield* own.run({ dieAt, until: settled(own, head) })
          const pins = yield* pinsFor(made.project)
          const place = (yield* own.standing)!
          const { items } = yield* everything(made.asking)
          const facts = new Map<string, StateEntry>()
          for (const { set } of items.slice(0, place.position)) {
            const event = yield* Effect.promise(() =>
              verifyEvent(set, { ...pins, issuer: "http://127.0.0.1:8080/lifecycle" })
            )
            for (const { group, id, value } of changesOf(event)) {
              if (value === null) facts.delete(`${group} ${id}`)
              else facts.set(`${group} ${id}`, { group, id, value })
            }
          }
          assert.deepStrictEqual(yield* own.facts, sorted([...facts.values()]))
        }
        const { facts, position: head } = yield* stateNow(made)
        yield* own.run({ until: settled(own, head) })
        assert.deepStrictEqual(yield* own.facts, facts)
      }),
    120_000,
  )

  it.effect("a revoked grant closes access; after a new grant it continues from its cursor without a snapshot", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const own = yield* product(made)
      const pat = yield* person()
      yield* access(made.institution, made.project, pat)
      yield* own.run({ until: opened })
      const mayEnter = Effect.promise(() => gate(own.store, made.project).mayEnter(issuer, pat))
      assert.isTrue((yield* mayEnter).may)
      const { revoke } = yield* ServiceGrants
      const following = yield* Effect.forkChild(own.run({ until: closedBy("refused") }))
      yield* run(revoke({
        personId: made.administrator,
        projectId: made.project,
        grantId: made.grantId,
        reason: "over and out",
      }))
      assert.isTrue(closedBy("refused")((yield* Fiber.join(following)).notices))
      assert.deepStrictEqual(yield* mayEnter, { may: false, because: "closed" })

      yield* grant(made, made.asking.clientId)
      const { notices } = yield* own.run({ until: opened })
      assert.isFalse(notices.some(({ kind }) => kind === "snapshot"))
      assert.isTrue((yield* mayEnter).may)
    }))

  it.effect("a database restored to an earlier position is noticed by the acknowledgement, and takes a snapshot", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const own = yield* product(made)
      yield* own.run({ until: opened })
      const backup = own.database.prepare("select * from bailiwick_consumer").get()!
      yield* change(made)
      const { position: head } = yield* stateNow(made)
      const { acknowledged } = yield* own.run({ until: settled(own, head) })
      const place = (yield* own.standing)!
      assert.strictEqual(acknowledged, place.cursor)
      own.database.prepare("update bailiwick_consumer set position = ?, cursor = ?, chain_head = ?").run(
        ...[backup["position"]!, backup["cursor"]!, backup["chain_head"]!],
      )
      const { notices } = yield* own.run({ until: opened })
      const [closed, retrying, snapshot] = notices
      assert.deepInclude(closed, { kind: "closed", because: "gap" })
      assert.match(String(closed?.kind === "closed" && closed.error), /restored/)
      assert.deepStrictEqual([retrying!.kind, snapshot!.kind], ["retrying", "snapshot"])
      assert.deepInclude(yield* own.standing, { open: true, position: head })
    }))

  it.effect("a forged message: nothing of its page is applied, access closes, and a snapshot leads past it", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const made = yield* scene
      const own = yield* product(made)
      yield* own.run({ until: opened })
      yield* change(made)
      const { facts, position: head } = yield* stateNow(made)
      const signed = Effect.map(everything(made.asking), ({ items }) => items.length)
      yield* Effect.repeat(signed, { until: (n) => n === head })
      const [, one, other] = (yield* everything(made.asking)).items.slice(-3)
      // This event's claims with another event's signature.
      const forged = [...one!.set.split(".").slice(0, 2), other!.set.split(".")[2]].join(".")
      yield* owner`update lifecycle_messages set message = ${forged}
        where project_id = ${made.project} and position = ${one!.position}`
      const { notices } = yield* own.run({ until: settled(own, head) })
      const kinds = notices.map((notice) => notice.kind === "closed" ? notice.because : notice.kind)
      assert.deepStrictEqual(kinds, ["authentication_failed", "retrying", "snapshot", "opened"])
      assert.deepStrictEqual(yield* own.facts, facts)
    }))

  it.effect("a served key that is not pinned closes access; forgetting the state and new pins open it again", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const keys = yield* SigningKeys
      const made = yield* scene
      const own = yield* product(made)
      yield* own.run({ until: opened })
      // As if another installation replaced this one: it has its own keys.
      yield* owner`truncate signing_keys, lifecycle_key_places, lifecycle_project_keys, lifecycle_key_news`
      yield* keys.ensure
      yield* change(made)
      const again = (notices: ReadonlyArray<Notice>) => notices.filter(({ kind }) => kind === "retrying").length >= 2
      const { notices } = yield* own.run({ until: again })
      assert.isTrue(closedBy("invalid_key")(notices))
      assert.isFalse(notices.some(({ kind }) => kind === "snapshot"))
      assert.deepInclude(yield* own.standing, { open: false, closedBecause: "invalid_key" })
      const served = (yield* keys.jwks).keys.map(({ kid }) => String(kid))
      assert.isFalse(served.some((kid) => own.pins.includes(kid)))

      // The product's operator starts over with the pins from the transmitter's operator.
      yield* Effect.promise(() => own.store.transact(() => Ledger.forget(made.project)))
      const anew = yield* own.run({ options: { pins: served }, until: opened })
      assert.isTrue(opened(anew.notices))
    }))

  // Runs last, because it raises the epoch of the whole installation.
  it.effect("another history or epoch leads to a snapshot; a wrong installed version leaves access open", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const made = yield* scene
      const own = yield* product(made)
      yield* own.run({ until: opened })
      yield* Effect.promise(() =>
        own.store.transact(() => ask("update bailiwick_consumer set chain_head = $1", `sha256:${"f".repeat(64)}`))
      )
      const other = yield* own.run({ until: opened })
      assert.isTrue(closedBy("chain_mismatch")(other.notices))

      yield* link(made.project, "2", 2)
      const { notices } = yield* own.run({ until: (notices) => notices.some(({ kind }) => kind === "unacknowledged") })
      assert.match(String(notices.map((notice) => "error" in notice ? notice.error : "")), /installed_version_mismatch/)
      assert.isTrue((yield* own.standing)!.open)

      yield* owner`update installation set epoch = epoch + 1`
      yield* change(made)
      const { facts, position: head } = yield* stateNow(made)
      const raised = yield* own.run({
        options: { installedVersion: "2" },
        until: settled(own, head),
      })
      assert.isTrue(closedBy("cursor_epoch_changed")(raised.notices))
      assert.deepInclude(yield* own.standing, { epoch: 2, position: head })
      assert.deepStrictEqual(yield* own.facts, facts)
    }))
})
