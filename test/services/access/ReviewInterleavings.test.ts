/**
 * Two concurrent decisions on one review: in any order of their round trips the outcome is that of one after the other.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { AccessReviewId, PersonId } from "../../../schemas/BrandedIds.ts"
import type { GrantReceipt } from "../../../schemas/identity/AccessReview.ts"
import { AccessReviews } from "../../../services/access/AccessReviews.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { Idempotency } from "../../../services/platform/security/Idempotency.ts"
import { reason, tagOf } from "../../support/Fixtures.ts"
import { interleaved } from "../../support/Interleaved.ts"
import { tell } from "../../support/TestIdentity.ts"
import { vault } from "../../support/TestVault.ts"
import { verified } from "./EvidenceChain.ts"
import { type Fixture, fixture, on, propose, revoke, services } from "./ReviewFixture.ts"

const all = Layer.provideMerge(vault, services)

const form = { status: 200, encode: (receipt: GrantReceipt) => JSON.stringify(receipt) }

/** Runs a decision as the API does, in a process of its own; gives its outcome. */
const decided = <E extends { readonly _tag: string }, R>(
  command: Effect.Effect<GrantReceipt, E, R>,
  path: string,
  key: string = randomUUID(),
) =>
  Effect.provide(Idempotency, Layer.fresh(Idempotency.layer), { local: true }).pipe(
    Effect.flatMap(({ fenced }) =>
      tagOf(fenced({ principal: "person:one", method: "POST", path, key, body: null }, form, command))
    ),
  )

/** The state of a fixture's reviews, without the ids that differ from fixture to fixture. */
const stateOf = ({ accessId, portal }: Fixture) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const reviews = yield* sql<{ id: AccessReviewId; state: string; approved_by: PersonId | null }>`
      select id::text as id, state, approved_by from access_reviews where access_id = ${accessId} order by proposed_at, id`
    for (const { id } of reviews) yield* verified(id)
    const kinds = yield* sql<{ kind: string; position: bigint }>`
      select kind, position from lifecycle_events where project_id = ${portal} order by position`
    assert.deepStrictEqual(kinds.map(({ position }) => Number(position)), kinds.map((_, i) => i + 1))
    const [{ audited } = { audited: 0 }] = yield* sql<{ audited: number }>`
      select count(*)::int as audited from audit_records
      where subject = any(${reviews.map(({ id }) => `access-review:${id}`)}::text[])`
    return { states: reviews.map(({ state }) => state), kinds: kinds.map(({ kind }) => kind), audited }
  })

type Decide = (w: Fixture, reviewId: AccessReviewId) => Effect.Effect<string, never, Layer.Success<typeof all>>

const by = (who: "ada" | "abe" | "sam", what: "approve" | "revoke", key?: string): Decide => (w, reviewId) =>
  Effect.flatMap(AccessReviews, (reviews) => {
    const decision = on(w, w[who], reviewId)
    const path = `/reviews/${reviewId}`
    return what === "approve"
      ? decided(reviews.approve({ ...decision, stepUp: Effect.void }), path, key)
      : decided(reviews.revoke(decision), path, key)
  })

const proposing: Decide = (w) =>
  Effect.flatMap(AccessReviews, (reviews) =>
    decided(
      reviews.propose({ access_id: w.accessId, access_version: 1, reason, personId: w.sam, institutionId: w.fern }),
      "/reviews",
    ))

/** A change, outside of the decisions, of something that they depend on. */
const leaving: Decide = ({ ada, fern }) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.as(
      Effect.orDie(sql`
        update institution_memberships set state = 'ended' where person_id = ${ada} and institution_id = ${fern}`),
      "done",
    ))
const superseding: Decide = ({ accessId, fern, pat, portal }) =>
  Effect.as(
    Effect.orDie(tell("access", {
      id: accessId,
      version: 2,
      institution_id: fern,
      project_id: portal,
      person_id: pat,
      role: "editor",
      state: "active",
    })),
    "done",
  )

const pairs = {
  "two approvals": [by("ada", "approve"), by("abe", "approve")],
  "an approval and a revocation": [by("ada", "approve"), by("abe", "revoke")],
  "an approval and the proposer's revocation": [by("ada", "approve"), by("sam", "revoke")],
  "two revocations": [by("ada", "revoke"), by("abe", "revoke")],
  "a revocation and a new proposal": [by("ada", "revoke"), proposing],
  "an approval and a new proposal": [by("ada", "approve"), proposing],
  "two new proposals": [proposing, proposing],
  "one approval twice under one key": [by("ada", "approve", "once"), by("ada", "approve", "once")],
  "an approval and the end of the approver's role": [by("ada", "approve"), leaving],
  "a revocation and the end of the revoker's role": [by("ada", "revoke"), leaving],
  "an approval and a change of the Access": [by("ada", "approve"), superseding],
  "a new proposal and a change of the Access": [proposing, superseding],
} as const

layer(all, { excludeTestServices: true, timeout: "2 minutes" })(
  "Concurrent decisions on reviews of one Access",
  (it) => {
    for (const [name, [one, other]] of Object.entries(pairs)) {
      for (const proposed of [true, false]) {
        it.effect(`${name}, ${proposed ? "on a proposed review" : "after a revocation"}, end as if made one after the other`, () =>
          Effect.gen(function* () {
            const { interleavings, serial } = yield* interleaved(Effect.gen(function* () {
              const w = yield* fixture
              const { review_id } = yield* propose(w)
              if (!proposed) yield* revoke(on(w, w.sam, review_id))
              return { commands: [one(w, review_id), other(w, review_id)] as const, state: stateOf(w) }
            }))
            const known = serial.map((ended) => JSON.stringify(ended))
            for (const ended of interleavings) assert.include(known, JSON.stringify(ended))
          }))
      }
    }
  },
)
