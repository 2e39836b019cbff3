/** Concurrent requests: one key fifty times, and decisions while the things they depend on change. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { codeOf, reason } from "../../../support/Fixtures.ts"
import { tell } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { type Answer, as, ask, done, key, send } from "./IdentityClient.ts"
import { type Asked, type Case, catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { during, strangers, waits } from "./Interleave.ts"
import { counted, effects, toldOfGrant } from "./RequestEffects.ts"
import { held } from "./ConformsToSpec.ts"
import { type IdentityStage, stage } from "./IdentityStage.ts"

const caseOf = (operation: string): Case => catalogue.find((one) => one.operation === operation)!

const sent = Effect.fnUntraced(function* (one: Case, asked: Asked, personId: string, headers = key()) {
  const operation = operationOf(one)
  const all = { ...(yield* as(personId)), ...asked.headers, ...headers }
  return held(operation, yield* send(operation.method, pathOf(operation, asked), all, asked.body))
})

const remove = (personId: string) =>
  Effect.flatMap(
    Database,
    ({ sql }) =>
      sql`update institution_memberships set state = 'ended' where person_id = ${personId} and state = 'active'`,
  )

const restore = (personId: string) =>
  Effect.flatMap(
    Database,
    ({ sql }) => sql`update institution_memberships set state = 'active' where person_id = ${personId}`,
  )

const deciding = [
  { operation: "access-grant-reviews.approveAccessGrantReview", table: "access_reviews", id: "review_id" },
  { operation: "lifecycle-service-grants.approveLifecycleServiceGrant", table: "service_grants", id: "grant_id" },
  { operation: "policies.approvePolicyReview", table: "policy_reviews", id: "review_id" },
] as const

/** Operations that approve and end the same thing, and its table. */
const ending = [
  {
    approve: "access-grant-reviews.approveAccessGrantReview",
    id: "review_id",
    table: "access_reviews",
    revoke: "access-grant-reviews.revokeAccessGrantReview",
    told: (what: "approved" | "revoked", id: string) =>
      counted(
        `select from lifecycle_events where kind = 'access-review-${what}'
        and payload->'review'->>'review_id' = $1`,
        id,
      ),
  },
  {
    approve: "lifecycle-service-grants.approveLifecycleServiceGrant",
    id: "grant_id",
    table: "service_grants",
    revoke: "lifecycle-service-grants.revokeLifecycleServiceGrant",
    told: toldOfGrant,
  },
] as const

/** 1 while this row is undecided, else 0. */
const undecided = (table: string, id: string) =>
  counted(`select from ${table} where id::text = $1 and state in ('proposed', 'open')`, id)

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Races over HTTP", (it) => {
  it.effect("fifty identical POSTs with one key have one effect and one answer", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      for (const [operation, count] of Object.entries(effects)) {
        const one = caseOf(operation)
        const asked = yield* one.asked(fixture, fixture.people[one.by])
        const same = { "idempotency-key": randomUUID() }
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }),
          () => sent(one, asked, fixture.people[one.by], same),
          { concurrency: "unbounded" },
        )
        const good = answers.filter(({ status }) => status === one.status)
        // A request that waited for two seconds is told to come back.
        for (const answer of answers) {
          if (!good.includes(answer)) assert.deepStrictEqual(codeOf(answer), [409, "idempotency_in_progress"])
        }
        assert.lengthOf(new Set(good.map(({ text }) => text)).values().toArray(), 1, operation)
        assert.lengthOf(good.filter(({ headers }) => headers["idempotency-replayed"] === undefined), 1, operation)
        assert.strictEqual(yield* count(asked, good[0]!), 1, operation)
      }
    }), 300_000)

  it.effect(
    "one of two concurrent approvals succeeds, and the other is told",
    () =>
      Effect.gen(function* () {
        const fixture = yield* stage
        const { administrator, administrator2 } = fixture.people
        for (const { operation } of deciding) {
          const one = caseOf(operation)
          const asked = yield* one.asked(fixture, administrator)
          const answers = yield* Effect.forEach(
            [administrator, administrator2, administrator, administrator2],
            (who) => sent(one, asked, who),
            { concurrency: "unbounded" },
          )
          const codes = new Set(answers.map((answer) => codeOf(answer)[1]))
          assert.sameMembers([...codes], [null, "invalid_state"], operation)
          assert.lengthOf(answers.filter(({ status }) => status === 200), 1, operation)
        }
      }),
    300_000,
  )

  it.effect("an approver whose role ends during the request is refused", () =>
    Effect.gen(function* () {
      const fixture: IdentityStage = yield* stage
      const { administrator } = fixture.people
      for (const { id, operation, table } of deciding) {
        const one = caseOf(operation)
        const asked = yield* one.asked(fixture, administrator)
        const [, answer] = yield* during(remove(administrator), sent(one, asked, administrator))
        assert.deepStrictEqual(codeOf(answer), [404, "not_found"], operation)
        assert.strictEqual(yield* undecided(table, asked.params![id]!), 1, operation)
        yield* restore(administrator)
      }
    }), 300_000)

  it.effect("the end of a role waits for a decision that has read it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fixture: IdentityStage = yield* stage
      const { administrator } = fixture.people
      yield* strangers
      for (const { id, operation, table } of deciding) {
        const one = caseOf(operation)
        const asked = yield* one.asked(fixture, administrator)
        const locked = sql`select from ${sql(table)} where id = ${asked.params![id]!}::uuid for update`
        const both = Effect.gen(function* () {
          const deciding = yield* Effect.forkChild(sent(one, asked, administrator))
          yield* waits(1)
          // The decision has read the role and waits for the row; the end of the role waits for the decision.
          const removing = yield* Effect.forkChild(remove(administrator))
          return [yield* Fiber.join(deciding), yield* Fiber.join(removing)] as const
        })
        const [, [answer]] = yield* during(locked, both, 2)
        assert.strictEqual(answer.status, 200, `${operation} ${answer.text}`)
        assert.strictEqual(yield* undecided(table, asked.params![id]!), 0, operation)
        const after = yield* sent(one, asked, administrator)
        assert.deepStrictEqual(codeOf(after), [404, "not_found"], operation)
        yield* restore(administrator)
      }
    }), 300_000)

  it.effect(
    "a concurrent approval and revocation end in revoked, with an event for each decision",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const fixture = yield* stage
        const { administrator, administrator2 } = fixture.people
        for (const { approve, id, revoke, table, told } of ending) {
          for (const first of ["approve", "revoke"]) {
            const asked = yield* caseOf(approve).asked(fixture, administrator)
            const row = asked.params![id]!
            const approving = sent(caseOf(approve), asked, administrator)
            const revoking = sent(caseOf(revoke), { ...asked, body: { reason: asked.body!["reason"] } }, administrator2)
            const [one, other] = first === "approve" ? [approving, revoking] as const : [revoking, approving] as const
            const locked = sql`select from ${sql(table)} where id = ${row}::uuid for update`
            const queued = Effect.gen(function* () {
              const before = yield* Effect.forkChild(one)
              yield* waits(1)
              const after = yield* Effect.forkChild(other)
              return [yield* Fiber.join(before), yield* Fiber.join(after)] as const
            })
            const [, answers] = yield* during(locked, queued, 2)
            const [approved, revoked] = first === "approve" ? answers : [answers[1], answers[0]]
            const known = first === "approve" ? [null, null] : ["invalid_state", null]
            assert.deepStrictEqual([approved, revoked].map((answer) => codeOf(answer)[1]), known, `${approve} ${first}`)
            assert.strictEqual(yield* counted(`select from ${table} where id::text = $1 and state = 'revoked'`, row), 1)
            const tellings = [yield* told("approved", row), yield* told("revoked", row)]
            // A review has an event for each decision; a grant that was never approved has none.
            assert.deepStrictEqual(tellings, first === "approve" ? [1, 1] : [0, table === "access_reviews" ? 1 : 0])
          }
        }
      }),
    300_000,
  )

  it.effect("a decision applies to the state at its commit", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fixture = yield* stage
      const { administrator } = fixture.people
      const review = caseOf("access-grant-reviews.approveAccessGrantReview")
      const proposed = Effect.gen(function* () {
        const asked = yield* review.asked(fixture, administrator)
        const [about] = yield* sql<{ id: string; institution_id: string; project_id: string; person_id: string }>`
          select a.id, a.institution_id, a.project_id, a.person_id from access a join access_reviews r on r.access_id = a.id
          where r.id = ${asked.params!["review_id"]!}::uuid`
        const change = tell("access", { ...about, version: 2, role: "editor", state: "active" })
        return { asked, change, reviewId: asked.params!["review_id"]! }
      })

      const late = yield* proposed
      const [, superseded] = yield* during(late.change, sent(review, late.asked, administrator))
      assert.deepStrictEqual(codeOf(superseded), [409, "access_version_superseded"])
      assert.strictEqual(yield* undecided("access_reviews", late.reviewId), 1)

      // A decision that has read the version keeps it until its end, and the change comes after.
      const early = yield* proposed
      const locked = sql`select from access_reviews where id = ${early.reviewId}::uuid for update`
      const both = Effect.gen(function* () {
        const deciding = yield* Effect.forkChild(sent(review, early.asked, administrator))
        yield* waits(1)
        const changing = yield* Effect.forkChild(early.change)
        const answer = yield* Fiber.join(deciding)
        yield* Fiber.join(changing)
        return answer
      })
      const [, approved] = yield* during(locked, both, 2)
      assert.deepStrictEqual([approved.status, approved.body.access?.version], [200, 1])

      const grant = caseOf("lifecycle-service-grants.approveLifecycleServiceGrant")
      const asked = yield* grant.asked(fixture, administrator)
      const withdrawn = sql`update projects set state = 'withdrawn' where id = ${fixture.project}`
      const [, refused] = yield* during(withdrawn, sent(grant, asked, administrator))
      assert.deepStrictEqual([codeOf(refused), refused.body.state], [[409, "invalid_state"], "withdrawn"])
    }), 300_000)

  it.effect("a decision with If-Match applies to that evidence alone", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      const { administrator } = fixture.people
      const { sql } = yield* Database
      for (const operation of ["approveAccessGrantReview", "revokeAccessGrantReview"]) {
        const one = caseOf(`access-grant-reviews.${operation}`)
        const asked = yield* one.asked(fixture, administrator)
        const [row] = yield* sql<{ evidence_digest: string }>`
          select evidence_digest from access_reviews where id = ${asked.params!["review_id"]!}::uuid`
        const seen = `"${row!.evidence_digest}"`
        const stale = `"sha256:${"0".repeat(64)}"`
        for (const sentTags of [stale, `W/${seen}`, row!.evidence_digest, `${seen} ${stale}`, ""]) {
          const answer = yield* sent(one, asked, administrator, { ...key(), "if-match": sentTags })
          assert.deepStrictEqual(codeOf(answer), [412, "precondition_failed"], sentTags)
        }
        const good = yield* sent(one, asked, administrator, { ...key(), "if-match": [stale, seen] as never })
        assert.deepStrictEqual([good.status, good.headers["etag"]], [200, `"${good.body.evidence_digest}"`])
      }
    }))

  it.effect(
    "following Link through 120 grants while they are written misses none and repeats none",
    () =>
      Effect.gen(function* () {
        const { people: { owner }, project } = yield* stage
        const path = `/v1/projects/${project}/lifecycle-service-grants`
        const body = { service_id: "fern-backend", capabilities: ["events.read"], environment: "production", reason }
        // A pool that is full for two seconds answers 503, and nothing was done.
        const propose = ask(owner, "POST", path, body).pipe(
          Effect.repeat({ until: ({ status }) => status !== 503 }),
          Effect.map((answer) => String(done(answer).id)),
        )
        const many = (n: number) => Effect.all(Array.from({ length: n }, () => propose), { concurrency: 8 })
        const first = yield* many(100)
        const writing = yield* Effect.forkChild(many(20))
        const read: Array<string> = []
        for (let next: string | undefined = `${path}?limit=7`; next !== undefined;) {
          const written = writing.pollUnsafe() !== undefined
          const { body, headers }: Answer = yield* ask(owner, "GET", next)
          const ids: ReadonlyArray<string> = body.map(({ id }: { id: string }) => id)
          read.push(...ids)
          const link: string | undefined = ids.length === 7
            ? `<${path}?limit=7&after_id=${ids.at(-1)}>; rel="next"`
            : undefined
          assert.strictEqual(headers["link"], link)
          // A page that is not full is the last for now; a later reader goes on after its last id.
          next = link?.slice(1, link.indexOf(">")) ?? (written ? undefined : `${path}?limit=7&after_id=${read.at(-1)}`)
        }
        const all = [...first, ...yield* Fiber.join(writing)]
        assert.lengthOf(all, 120)
        assert.deepStrictEqual(read, all.toSorted())
      }),
    300_000,
  )
})
