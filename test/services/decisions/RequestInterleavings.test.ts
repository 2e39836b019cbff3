/** Two concurrent requests: in any order of their round trips the outcome is that of one after the other. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { randomUUID } from "node:crypto"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { NewPeople } from "../../../services/people/NewPeople.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { reason } from "../../support/Fixtures.ts"
import { interleaved } from "../../support/Interleaved.ts"
import { counting } from "../../support/Statements.ts"
import { access, issuer, project } from "../../support/TestIdentity.ts"
import { codeOf, decided, type Fixture, fixture, services } from "./RequestFixture.ts"

type Services = Layer.Success<typeof services>

interface Scenario extends Fixture {
  readonly portal: ProjectId
  readonly subject: string
}

const scenario = Effect.gen(function* () {
  const w = yield* fixture
  return { ...w, portal: yield* project(w.fern), subject: randomUUID() }
})

const stateOf = ({ fern, subject }: Scenario) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const requests = yield* sql`
      select r.kind, r.state, v.state as review, v.required_roles, exists (
          select from timers t where t.aggregate_id = r.id::text) as timed,
        (select count(*)::int from audit_records a where a.subject = 'request:' || r.id) as audited
      from requests r left join policy_reviews v on v.request_id = r.id
      where r.institution_id = ${fern} order by r.kind, r.id`
    const people = yield* sql`
      select p.status, (select count(*)::int from audit_records a where a.subject = 'person:' || p.id) as audited
      from people p join identities i on i.person_id = p.id where i.subject = ${subject}`
    return { requests, people }
  })

type Ask = (at: Scenario) => Effect.Effect<string, never, Services>

const asksForAccess: Ask = ({ fern, pat, portal }) =>
  Effect.flatMap(
    Requests,
    (requests) => codeOf(decided(requests.access({ institution_id: fern, project_id: portal, reason, personId: pat }))),
  )
const asksForRole = (by: "ada" | "sam"): Ask => (at) =>
  Effect.flatMap(Requests, (requests) =>
    codeOf(decided(requests.membership({
      institutionId: at.fern,
      personId: at[by],
      person_id: at.abe,
      role: "sponsor",
      state: "active",
      reason,
    }))))
const invites: Ask = ({ fern, sam }) =>
  Effect.flatMap(Enrollments, (enrollments) =>
    codeOf(decided(enrollments.enroll({
      institutionId: fern,
      personId: sam,
      recipient: "new@fern.example",
      reason,
    }))))
const makes: Ask = ({ oz, subject }) =>
  Effect.flatMap(NewPeople, (people) =>
    codeOf(decided(people.create({
      issuer,
      subject,
      reason,
      by: { principal: `person:${oz}`, personId: oz, issuer, clientId: "portal" },
    }))))

/** A change by one statement of something that the concurrent command depends on. */
const changes =
  (statement: (at: Scenario, sql: Database["Service"]["sql"]) => Effect.Effect<unknown, unknown>): Ask => (at) =>
    Effect.flatMap(Database, ({ sql }) => Effect.as(Effect.orDie(statement(at, sql)), "done"))
const withdraws = changes(({ portal }, sql) => sql`update projects set state = 'withdrawn' where id = ${portal}`)
const suspends = changes(({ pat }, sql) => sql`update people set status = 'suspended' where id = ${pat}`)
const unseats = changes(({ sam }, sql) =>
  sql`update institution_memberships set state = 'ended' where person_id = ${sam}`
)
const demotes = changes(({ oz }, sql) => sql`update people set operator = false where id = ${oz}`)
const isLetIn: Ask = ({ fern, pat, portal }) => Effect.as(Effect.orDie(access(fern, portal, pat)), "done")

const pairs = {
  "two requests for one Access": [asksForAccess, asksForAccess],
  "a request for Access and the withdrawal of its project": [asksForAccess, withdraws],
  "a request for Access and the suspension of its person": [asksForAccess, suspends],
  "a request for Access and the Access itself": [asksForAccess, isLetIn],
  "two requests for one role": [asksForRole("ada"), asksForRole("sam")],
  "a request for a role and the end of its author's": [asksForRole("sam"), unseats],
  "two invitations": [invites, invites],
  "an invitation and the end of its author's role": [invites, unseats],
  "two creations of one person": [makes, makes],
  "a new person and the end of the operator's right": [makes, demotes],
} as const

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Concurrent requests", (it) => {
  for (const [name, [one, other]] of Object.entries(pairs)) {
    it.effect(`${name} end as if made one after the other`, () =>
      Effect.gen(function* () {
        const { interleavings, serial } = yield* interleaved(
          Effect.map(scenario, (at) => ({ commands: [one(at), other(at)] as const, state: stateOf(at) })),
        )
        const known = serial.map((ended) => JSON.stringify(ended))
        for (const ended of interleavings) assert.include(known, JSON.stringify(ended))
      }))
  }

  it.effect("each request takes two round trips", () =>
    Effect.gen(function* () {
      const at = yield* scenario
      for (const ask of [asksForAccess, asksForRole("ada"), invites, makes]) {
        assert.deepStrictEqual(yield* counting(ask(at)), [2, "done"])
      }
      const requests = yield* Requests
      const asked = {
        name: "Moss",
        organization_type: "club",
        website: "https://moss.example",
        purpose: "moss",
        domains: ["moss.example"],
        contacts: [],
        reason,
        personId: at.pat,
      }
      const [statements] = yield* counting(decided(requests.organization(asked)))
      assert.strictEqual(statements, 2)
    }))
})
