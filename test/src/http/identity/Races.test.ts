/** Requests that meet: one key fifty times, and a role that is taken away while its holder decides. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import type { SqlError } from "effect/sql"
import { randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/Database.ts"
import { management } from "../../../support/TestManagement.ts"
import { type Answer, as, codeOf, key, send } from "./Ask.ts"
import { type Asked, type Case, catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { held } from "./Held.ts"
import { type Stage, stage } from "./Stage.ts"

const caseOf = (operation: string): Case => catalogue.find((one) => one.operation === operation)!

const sent = Effect.fnUntraced(function* (one: Case, asked: Asked, personId: string, headers = key()) {
  const operation = operationOf(one)
  const all = { ...(yield* as(personId)), ...asked.headers, ...headers }
  return held(operation, yield* send(operation.method, pathOf(operation, asked), all, asked.body))
})

/** Where each effect can be counted. */
const effects: Readonly<
  Record<string, (asked: Asked, answer: Answer) => Effect.Effect<number, SqlError.SqlError, Database>>
> = {
  "access-grant-reviews.proposeAccessGrantReview": (asked) =>
    counted("select from access_reviews where access_id = $1", asked.body!["access_id"]),
  "websites.registerWebsite": (asked) => counted("select from projects where website = $1", asked.body!["website"]),
  "enrollments.createEnrollment": (asked) =>
    counted("select from requests where fields ->> 'recipient' = $1", asked.body!["recipient"]),
  "requests.createPerson": (asked) => counted("select from people where subject = $1", asked.body!["subject"]),
  "access-grant-reviews.approveAccessGrantReview": (_asked, { body }) =>
    counted("select from access_review_evidence where action = 'approve' and review_id::text = $1", body.review_id),
  "websites.withdrawWebsite": (_asked, { body }) =>
    counted("select from lifecycle_events where kind = 'project-withdrawn' and project_id = $1", body.project_id),
}

const counted = (statement: string, value: unknown) =>
  Effect.flatMap(Database, ({ sql }) => Effect.map(sql.unsafe(statement, [value]), (rows) => rows.length))

/** So many wait for a lock of this database. */
const waits = Effect.fnUntraced(function* (many: number) {
  const { sql } = yield* Database
  yield* sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
    Effect.filterOrFail((rows) => rows.length >= many),
    Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 300 }),
  )
})

/** Does `first` in a transaction that ends once `many` wait because of what `meanwhile` began. Gives both. */
const during = Effect.fnUntraced(function* <A, E, R, B, F, S>(
  first: Effect.Effect<A, E, R>,
  meanwhile: Effect.Effect<B, F, S>,
  many = 1,
) {
  const { sql } = yield* Database
  const [ready, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const holder = yield* first.pipe(
    Effect.tap(() => Deferred.succeed(ready, undefined)),
    Effect.tap(() => Deferred.await(end)),
    sql.withTransaction,
    Effect.forkChild,
  )
  yield* Deferred.await(ready)
  const other = yield* Effect.forkChild(meanwhile)
  yield* waits(many)
  yield* Deferred.succeed(end, undefined)
  return [yield* Fiber.join(holder), yield* Fiber.join(other)] as const
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

/** How many of this row there are that nobody has decided on. */
const undecided = (table: string, id: string) =>
  counted(`select from ${table} where id::text = $1 and state in ('proposed', 'open')`, id)

layer(management(), { excludeTestServices: true, timeout: "60 seconds" })("Races over HTTP", (it) => {
  it.effect("fifty identical POSTs with one key have one effect and one answer", () =>
    Effect.gen(function* () {
      const world = yield* stage
      for (const [operation, count] of Object.entries(effects)) {
        const one = caseOf(operation)
        const asked = yield* one.asked(world, world.people[one.by])
        const same = { "idempotency-key": randomUUID() }
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }),
          () => sent(one, asked, world.people[one.by], same),
          { concurrency: "unbounded" },
        )
        const good = answers.filter(({ status }) => status === one.status)
        // Who has waited for two seconds is told to come back.
        for (const answer of answers) {
          if (!good.includes(answer)) assert.deepStrictEqual(codeOf(answer), [409, "idempotency_in_progress"])
        }
        assert.lengthOf(new Set(good.map(({ text }) => text)).values().toArray(), 1, operation)
        assert.lengthOf(good.filter(({ headers }) => headers["idempotency-replayed"] === undefined), 1, operation)
        assert.strictEqual(yield* count(asked, good[0]!), 1, operation)
      }
    }), 60_000)

  it.effect(
    "of two administrators who approve at once one does, and the other hears of it",
    () =>
      Effect.gen(function* () {
        const world = yield* stage
        const { administrator, administrator2 } = world.people
        for (const { operation } of deciding) {
          const one = caseOf(operation)
          const asked = yield* one.asked(world, administrator)
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
    60_000,
  )

  it.effect("a role that is gone when its holder decides decides nothing", () =>
    Effect.gen(function* () {
      const world: Stage = yield* stage
      const { administrator } = world.people
      for (const { id, operation, table } of deciding) {
        const one = caseOf(operation)
        const asked = yield* one.asked(world, administrator)
        const [, answer] = yield* during(remove(administrator), sent(one, asked, administrator))
        assert.deepStrictEqual(codeOf(answer), [404, "not_found"], operation)
        assert.strictEqual(yield* undecided(table, asked.params![id]!), 1, operation)
        yield* restore(administrator)
      }
    }), 60_000)

  it.effect("a role that is taken away during a decision is there until that has ended", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const world: Stage = yield* stage
      const { administrator } = world.people
      for (const { id, operation, table } of deciding) {
        const one = caseOf(operation)
        const asked = yield* one.asked(world, administrator)
        const locked = sql`select from ${sql(table)} where id = ${asked.params![id]!}::uuid for update`
        const both = Effect.gen(function* () {
          const deciding = yield* Effect.forkChild(sent(one, asked, administrator))
          yield* waits(1)
          // The decision has read the role and waits for the row; whoever takes the role away waits for the decision.
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
    }), 60_000)
})
