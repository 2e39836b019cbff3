import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { PersonId } from "../../../schemas/BrandedIds.ts"
import { NewPeople } from "../../../services/people/NewPeople.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { reason } from "../../support/Fixtures.ts"
import { identity, institution, issuer, member, person } from "../../support/TestIdentity.ts"
import { codeOf, writer } from "../decisions/RequestFixture.ts"
import { identitiesOf } from "../links/LinkSteps.ts"

const services = NewPeople.layer({ writers: [`${writer.issuer} ${writer.clientId}`] }).pipe(
  Layer.provideMerge(Roles.layer),
  Layer.provideMerge(identity),
)

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("NewPeople", (it) => {
  it.effect("operators and directory services make a person once for each identity", () =>
    Effect.gen(function* () {
      const [oz, sam] = [yield* person({ operator: true }), yield* person()]
      const people = yield* NewPeople
      const by = (personId: PersonId | null, clientId: string = writer.clientId, from: string = writer.issuer) => ({
        principal: "somebody",
        personId,
        issuer: from,
        clientId,
      })
      const create = (subject: string, who: ReturnType<typeof by>, at: string = issuer) =>
        run(people.create({ issuer: at, subject, reason, by: who }))
      const subject = randomUUID()
      const made = yield* create(subject, by(oz))
      assert.deepInclude(made, { issuer, subject, state: "active", version: 1, policy_review: null })
      assert.deepStrictEqual(yield* identitiesOf(made.person_id), [subject])
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select action, actor, details from audit_records where subject = ${`person:${made.person_id}`}`,
        [{ action: "person.created", actor: "somebody", details: { reason } }],
      )
      assert.strictEqual(yield* codeOf(create(subject, by(null))), "person_exists")
      yield* create(subject, by(null), "")
      assert.strictEqual(yield* codeOf(create(randomUUID(), by(sam))), "role_required")
      assert.strictEqual(yield* codeOf(create(randomUUID(), by(null, "robot"))), "role_required")
      assert.strictEqual(
        yield* codeOf(create(randomUUID(), by(null, writer.clientId, "https://other"))),
        "role_required",
      )
      // Longer than an index entry may be, and incompressible.
      const endless = Array.from({ length: 200 }, () => randomUUID()).join("")
      assert.strictEqual(yield* codeOf(create(endless, by(oz))), "HTTPValidationError")
      const [moss, roles] = [yield* institution(), yield* Roles]
      yield* member(moss, made.person_id, "sponsor")
      assert.isFalse(yield* roles.independent(made.person_id, oz))
    }))
})
