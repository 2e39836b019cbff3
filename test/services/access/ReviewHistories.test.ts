/**
 * Random histories of reviews in one institution: proposers, approvers and revokers, changes of the Access, roles,
 * provenance, merges of people, replays, and the positions of products all vary. In each: every answer is the model's;
 * no person approved their own proposal, under any name; a decision leaves the Access alone; a replay is the original; the
 * evidence is whole; and each of the four states of a decision follows from its own source alone.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import type { GrantReceipt } from "../../../schemas/identity/AccessReview.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { merging } from "../../../services/links/Links/Merging.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { type Asked, Idempotency } from "../../../services/platform/security/Idempotency.ts"
import { day, reason } from "../../support/Fixtures.ts"
import { runs } from "../../support/Runs.ts"
import { access, identity, institution, member, person, project, tell } from "../../support/TestIdentity.ts"
import { vault } from "../../support/TestVault.ts"
import { verified } from "./EvidenceChain.ts"
import * as Model from "./ReviewModel.ts"
import { asAnew } from "./ReviewFixture.ts"

const services = Layer.merge(AccessReviews.layer, Idempotency.layer).pipe(
  Layer.provideMerge(Roles.layer),
  Layer.provideMerge(vault),
  Layer.provideMerge(identity),
)
const histories = runs(45)

const tagOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => ({ tag: error instanceof Error ? error.name : String(error), value: null }),
    onSuccess: (value) => ({ tag: "done", value }),
  })

const encode = { status: 200, encode: (receipt: GrantReceipt) => JSON.stringify(receipt) }

/** An institution of the model's people, and an administrator who only reads. */
const fixture = Effect.gen(function* () {
  const fern = yield* institution()
  const ids = yield* Effect.forEach(Array.from({ length: Model.people }), () => person())
  const [portal, pat, watcher] = [yield* project(fern), yield* person(), yield* person()]
  yield* member(fern, watcher, "administrator")
  return { fern, ids, portal, pat, watcher, accessId: yield* access(fern, portal, pat) }
})

const history = Effect.fnUntraced(function* (steps: ReadonlyArray<Model.Step>) {
  const reviews = yield* AccessReviews
  const { fenced } = yield* Idempotency
  const { sql } = yield* Database
  const { decidedTogether, entangled, merge } = merging(sql)
  const { accessId, fern, ids, pat, portal, watcher } = yield* fixture
  const m = Model.fresh()
  const answers: Array<{ readonly who: number; readonly asked: Asked; readonly body: string }> = []
  let feed = 1

  const seat = Effect.fnUntraced(function* ({ role, state, who }: Extract<Model.Step, { do: "seat" }>) {
    yield* member(fern, ids[who]!, role, {
      id: `${fern}-${who}-${role}`,
      version: ++feed,
      state: state === "expired" ? "active" : state,
      expires_at: state === "expired" ? "2020-01-01T00:00:00Z" : null,
    })
    m.seats.set(`${who} ${role}`, { who, role, state })
  })
  for (const who of [0, 1]) yield* seat({ do: "seat", who, role: "sponsor", state: "active" })
  for (const who of [1, 2, 3]) yield* seat({ do: "seat", who, role: "administrator", state: "active" })

  const theAccess = Effect.map(
    sql`select a.*, (select count(*) from access_versions v where v.access_id = a.id) as versions
      from access a where id = ${accessId}`,
    ([row]) => row,
  )

  /** Sends a decision under its own idempotency key, and checks that it leaves the Access alone. */
  const decide = Effect.fnUntraced(
    function* <E, R>(who: number, path: string, command: Effect.Effect<GrantReceipt, E, R>) {
      const before = yield* theAccess
      const asked = { principal: `person:${ids[who]!}`, method: "POST", path, key: randomUUID(), body: { reason } }
      const { tag, value } = yield* tagOf(fenced(asked, encode, command))
      assert.deepStrictEqual(yield* theAccess, before)
      if (value !== null) answers.push({ who, asked, body: value.body })
      return { tag, receipt: value === null ? null : JSON.parse(value.body) as GrantReceipt }
    },
  )

  const propose = Effect.fnUntraced(function* (step: Extract<Model.Step, { do: "propose" }>) {
    const { who } = step
    const version = step.version === "the current" ? m.access.version : step.version
    const asked = { access_id: accessId, access_version: version, reason, personId: ids[who]!, institutionId: fern }
    const { receipt, tag } = yield* decide(who, "/reviews", reviews.propose(asked))
    assert.strictEqual(tag, Model.proposing(m, who, version))
    if (receipt === null) return
    const { evidence_digest, review_id } = receipt
    m.reviews.push({
      id: review_id,
      version,
      proposer: who,
      digests: [evidence_digest],
      state: "proposed",
      approver: null,
      revoker: null,
    })
  })

  const judge = Effect.fnUntraced(function* (step: Extract<Model.Step, { do: "approve" | "revoke" }>) {
    const review = m.reviews[step.nth % Math.max(1, m.reviews.length)]
    if (review === undefined) return
    const { seen, who } = step
    const names = {
      "nothing": undefined,
      "the first": review.digests.slice(0, 1),
      "the newest": review.digests.slice(-1),
    }
    const about = { personId: ids[who]!, institutionId: fern, reviewId: review.id, reason, seen: names[seen] }
    const path = `/reviews/${review.id}/${step.do}`
    const { receipt, tag } = step.do === "approve"
      ? yield* decide(who, path, reviews.approve({ ...about, stepUp: Effect.void }))
      : yield* decide(who, path, reviews.revoke(about))
    const expected = step.do === "approve" ? Model.approving : Model.revoking
    assert.strictEqual(tag, expected(m, who, review, seen), JSON.stringify(step))
    if (receipt === null) return
    review.digests.push(receipt.evidence_digest)
    Object.assign(
      review,
      step.do === "approve" ? { state: "approved", approver: who } : { state: "revoked", revoker: who },
    )
  })

  /** Repeats a request: whatever became of its author, the answer is the first one, and nothing runs again. */
  const replay = Effect.fnUntraced(function* ({ nth, same }: Extract<Model.Step, { do: "replay" }>) {
    const first = answers[nth % Math.max(1, answers.length)]
    if (first === undefined) return
    const principal = `person:${ids[m.canonical[first.who]!]!}`
    const asked = { ...first.asked, principal, ...(same ? {} : { body: { reason: "something else" } }) }
    const { tag, value } = yield* tagOf(fenced(asked, encode, Effect.die(new Error("done again"))))
    if (!same) return assert.strictEqual(tag, "IdempotencyKeyReused")
    assert.deepStrictEqual(value, { status: 200, body: first.body, replayed: true })
  })

  const change = Effect.fnUntraced(function* ({ role, state }: Extract<Model.Step, { do: "change" }>) {
    const line = { institution_id: fern, project_id: portal, person_id: pat, role }
    yield* tell("access", {
      id: accessId,
      version: ++feed,
      ...(state === "removed" ? { removed: true } : { ...line, state }),
    })
    const after = state === "removed" ? { role: m.access.role, state: "revoked" as const } : { role, state }
    if (after.state !== m.access.state || after.role !== m.access.role) m.access.version++
    Object.assign(m.access, after)
  })

  const vouch = Effect.fnUntraced(function* ({ do: _, who, ...how }: Extract<Model.Step, { do: "vouch" }>) {
    const approved = [...(how.as === "approved" ? [ids[how.by]!] : []), ...(how.third ? [pat] : [])]
    yield* sql`update people set made_by = ${
      how.as === "made" ? ids[how.by]! : null
    }, approved_by = ${approved}::text[],
      created_at = ${new Date(Date.now() - how.days * day)} where id = ${ids[who]!}`
    m.vouched.set(who, how)
  })

  /** Merges two people without asking `Links`: the tables themselves must refuse two who decided together. */
  const become = Effect.fnUntraced(function* ({ into, who }: Extract<Model.Step, { do: "merge" }>) {
    if (who === into || Model.isGone(m, who) || Model.isGone(m, into)) return
    const two = Model.together(m, who, into)
    assert.strictEqual(yield* decidedTogether(ids[who]!, ids[into]!), two)
    assert.strictEqual(yield* entangled(ids[who]!), Model.entangled(m, who))
    const names = { from: ids[who]!, into: ids[into]!, approvedBy: [], now: new Date() }
    const merged = yield* Effect.exit(sql.withTransaction(merge(names)))
    assert.strictEqual(Exit.isFailure(merged), two)
    if (!two) m.canonical.forEach((one, i) => m.canonical[i] = one === who ? into : one)
  })

  const hold = (held: boolean) => {
    m.held = held
    return held
      ? sql`update installation set state = 'held', held_since = ${new Date()}, held_reason = 'restored'`
      : sql`update installation set state = 'open', held_since = null, held_reason = null`
  }

  const place = Effect.fnUntraced(function* (quarters: number) {
    const [head] = yield* sql<{ position: bigint }>`select position from lifecycle_heads where project_id = ${portal}`
    return quarters === 0 ? null : BigInt(Math.ceil(Number(head!.position) * quarters / 3))
  })
  const reached: { delivered: bigint | null; acknowledged: bigint | null } = { delivered: null, acknowledged: null }
  const follow = Effect.fnUntraced(function* (step: Extract<Model.Step, { do: "follow" }>) {
    Object.assign(reached, { delivered: yield* place(step.delivered), acknowledged: yield* place(step.acknowledged) })
    const at = new Date()
    const to = (position: bigint | null) =>
      position === null ? sql`null, null, null` : sql`1, ${position}::bigint, ${at}::timestamptz`
    yield* sql`delete from lifecycle_consumers where project_id = ${portal}`
    yield* sql`insert into lifecycle_consumers (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
        acknowledged_epoch, acknowledged_position, acknowledged_at)
      values (${portal}, 'backend', ${to(reached.delivered)}, ${to(reached.acknowledged)})`
  })

  const take = (step: Model.Step): Effect.Effect<unknown, unknown, Layer.Success<typeof services>> => {
    switch (step.do) {
      case "propose":
        return propose(step)
      case "approve":
      case "revoke":
        return judge(step)
      case "replay":
        return replay(step)
      case "change":
        return change(step)
      case "seat":
        return seat(step)
      case "vouch":
        return vouch(step)
      case "merge":
        return become(step)
      case "hold":
        return hold(step.held)
      case "follow":
        return follow(step)
    }
  }
  // After each step the kept list must equal a new one.
  const taken = (step: Model.Step) => Effect.andThen(take(step), asAnew(watcher, fern))
  yield* Effect.forEach(steps, taken).pipe(Effect.ensuring(Effect.orDie(hold(false))))

  assert.deepInclude(yield* theAccess, {
    state: m.access.state,
    role: m.access.role,
    access_version: m.access.version,
    versions: BigInt(m.access.version),
  })
  const same = yield* sql`
    select from access_reviews r join people p on p.id = r.proposed_by join people a on a.id = r.approved_by
    where r.institution_id = ${fern} and coalesce(p.merged_into, p.id) = coalesce(a.merged_into, a.id)`
  assert.lengthOf(same, 0)
  const listed = yield* asAnew(watcher, fern)
  assert.sameMembers(listed.reviews.map(({ review_id }) => review_id), m.reviews.map(({ id }) => id))
  const open = m.reviews.some(({ state, version }) => version === m.access.version && state !== "revoked")
  assert.lengthOf(listed.candidates, m.access.state === "active" && !open ? 1 : 0)
  const has = (to: "acknowledged" | "delivered", position: bigint) => reached[to] !== null && reached[to] >= position
  const [granted] = yield* sql<{ position: bigint }>`select e.position from access_versions v
    join lifecycle_events e on e.id = v.event_id where v.access_id = ${accessId} order by v.access_version desc limit 1`
  for (const review of m.reviews) {
    assert.deepStrictEqual(yield* verified(review.id), review.digests)
    const shown = listed.reviews.find(({ review_id }) => review_id === review.id)!
    const [told] = yield* sql<{ position: bigint }>`select position from lifecycle_events
      where project_id = ${portal} and payload -> 'review' ->> 'review_id' = ${review.id} order by position desc limit 1`
    const { acknowledgement, decision, delivery, effective_access, validity } = shown
    assert.deepStrictEqual([decision.state, delivery.state, acknowledgement.state, effective_access.state], [
      review.state,
      told === undefined ? "none" : has("delivered", told.position) ? "delivered" : "queued",
      told === undefined ? "none" : has("acknowledged", told.position) ? "acknowledged" : "pending",
      has("acknowledged", granted!.position)
        ? (m.access.state === "active" ? "effective" : "not_effective")
        : "unknown",
    ])
    assert.deepStrictEqual(validity.reasons, Model.reasonsOf(m, review))
  }
})

layer(services, { excludeTestServices: true })("Random histories of reviews", (it) => {
  it.effect(
    "keep four eyes, whole evidence, independent states of decision, and the Access",
    () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context<Layer.Success<typeof services>>())
        const steps = fc.array(Model.step, { minLength: 10, maxLength: 30 })
        const property = fc.asyncProperty(steps, (steps) => run(history(steps)))
        yield* Effect.promise(() => fc.assert(property, { numRuns: histories, endOnFailure: true }))
      }),
    300_000,
  )
})
