/**
 * Institutions with sponsors, administrators, projects and Access that waits for review; one institution with a
 * thousand reviews in every state; and people whose own account is read. Access versions, grant events, reviews and
 * evidence are made by the program's own services.
 */
import { Effect, Layer, References } from "effect"
import { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import { AccessReviews } from "../../services/access/AccessReviews.ts"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { Roles } from "../../services/people/Roles.ts"
import { Audit } from "../../services/platform/observability/Audit.ts"
import { Database } from "../../services/platform/database/Database.ts"
import { runOnce } from "../../services/platform/database/UnitOfWork.ts"
import { silent } from "./LifecycleSeed.ts"

/** The issuer of people's tokens. */
export const issuer = "https://people.bench.example"

export const institutions = 100
/** Sponsors, and administrators, of each institution. */
export const seats = 4
export const operators = 20
/** People whose account is read, one a connection. */
export const readers = 32
/** The institution that is listed. */
export const listed = InstitutionId.make("listed")
/** Its administrators. */
export const listers = 8

export const institutionId = (n: number): InstitutionId => InstitutionId.make(`institution-${n % institutions}`)
/** One of the two of institution n. */
export const projectId = (n: number): string => `project-${n % institutions}-${Math.floor(n / institutions) % 2}`
export const sponsor = (n: number): string => `sponsor-${n % institutions}-${Math.floor(n / institutions) % seats}`
export const administrator = (n: number): string =>
  `administrator-${n % institutions}-${Math.floor(n / institutions) % seats}`
/** Holder of the Access of number n; asks for a project of another institution. */
export const user = (n: number): string => `user-${n}`
export const accessId = (n: number): AccessId => AccessId.make(`access-${n}`)
export const operator = (n: number): string => `operator-${n % operators}`
export const reader = (n: number): string => `reader-${n % readers}`
export const lister = (n: number): PersonId => PersonId.make(`lister-${n % listers}`)

const at = new Date("2025-01-01")
const reason = "as the bench has it"

/** How many reviews the listed institution has. */
export const reviews = 1_000
const unreviewed = 40
const listedProjects = 5

const people = (ids: ReadonlyArray<string>, isOperator = false) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    yield* sql`insert into people (id, updated_at, created_at, issuer, subject, display_name, email, email_verified,
        operator, status)
      select id, ${at}, ${at}, ${issuer}, id, 'Somebody ' || id, id || '@example.com', true, ${isOperator}, 'active'
      from unnest(${[...ids]}::text[]) id`
    yield* sql`insert into identities (issuer, subject, person_id, linked_at)
      select ${issuer}, id, id, ${at} from unnest(${[...ids]}::text[]) id`
  })

const members = (role: string, seated: ReadonlyArray<readonly [institution: string, person: string]>) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    yield* sql`insert into institution_memberships (id, updated_at, institution_id, person_id, role, state, accepted_at)
      select gen_random_uuid()::text, ${at}, i, p, ${role}, 'active', ${at}
      from unnest(${seated.map(([institution]) => institution)}::text[], ${seated.map(([, person]) => person)}::text[])
        m(i, p)`
  })

const projects = (owned: ReadonlyArray<readonly [institution: string, project: string]>) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    yield* sql`insert into projects (id, updated_at, institution_id, name, website, environment, connector_kind, state,
        installed_version)
      select p, ${at}, i, p, 'https://' || p || '.example', 'production', 'service_connector', 'launched', '1.0.0'
      from unnest(${owned.map(([institution]) => institution)}::text[], ${owned.map(([, project]) => project)}::text[])
        o(i, p)`
  })

interface Granted {
  readonly id: AccessId
  readonly institution: InstitutionId
  readonly project: string
  readonly person: string
}

const granted = (rows: ReadonlyArray<Granted>) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    const versions = yield* AccessVersions
    yield* sql`insert into access (id, updated_at, institution_id, project_id, person_id, role, state)
      select id, ${at}, institution, project, person, 'user', 'active'
      from json_to_recordset(${JSON.stringify(rows)}::json) r(id text, institution text, project text, person text)`
    for (let from = 0; from < rows.length; from += 200) {
      const some = rows.slice(from, from + 200)
      yield* runOnce(Effect.forEach(some, ({ id }) => versions.settle(id), { discard: true }))
    }
  })

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const listedSponsor = (n: number) => PersonId.make(`listed-sponsor-${n % seats}`)
const listedProject = (n: number) => `listed-project-${n % listedProjects}`

/** Of ten proposals, three wait and five were approved, one of them revoked afterwards, and one was revoked before. */
const reviewed = (rows: ReadonlyArray<Granted>) =>
  Effect.gen(function* () {
    const service = yield* AccessReviews
    const decide = Effect.fnUntraced(function* ({ id, institution }: Granted, n: number) {
      const by = { institutionId: institution, reason }
      const proposal = { access_id: id, access_version: 1, personId: listedSponsor(n) }
      const { review_id: reviewId } = yield* runOnce(service.propose({ ...by, ...proposal }))
      const decision = { ...by, reviewId, personId: lister(n) }
      if (n % 10 >= 3 && n % 10 < 9) yield* runOnce(service.approve({ ...decision, stepUp: Effect.void }))
      if (n % 10 >= 8) yield* runOnce(service.revoke(decision))
    })
    // A unit of work for each: a decision reads what the one before has written.
    yield* Effect.forEach(rows, decide, { concurrency: 8, discard: true })
  })

const theListed = Effect.gen(function* () {
  const { owner: sql } = yield* Database
  yield* sql`insert into institutions (id, updated_at, name, status) values (${listed}, ${at}, 'Listed', 'active')`
  const holders = numbers(reviews + unreviewed).map((n) => `holder-${n}`)
  const sponsors = numbers(seats).map(listedSponsor)
  const administrators = numbers(listers).map(lister)
  yield* people([...holders, ...sponsors, ...administrators])
  yield* members("sponsor", sponsors.map((id) => [listed, id]))
  yield* members("administrator", administrators.map((id) => [listed, id]))
  yield* members("member", holders.map((id) => [listed, id]))
  yield* projects(numbers(listedProjects).map((n) => [listed, listedProject(n)]))
  const rows = holders.map((person, n): Granted => ({
    id: AccessId.make(`listed-access-${n}`),
    institution: listed,
    project: listedProject(n),
    person,
  }))
  yield* granted(rows)
  yield* reviewed(rows.slice(0, reviews))
  // Some Accesses were removed since, some people left, one sponsor lost the role, and products know different parts.
  yield* sql`update access set removed = true where institution_id = ${listed} and id like '%7'`
  yield* sql`update institution_memberships set state = 'ended'
    where institution_id = ${listed} and role = 'member' and person_id like '%13'`
  yield* sql`update institution_memberships set state = 'suspended' where person_id = ${listedSponsor(3)}`
  yield* sql`insert into lifecycle_consumers (project_id, consumer, delivered_epoch, delivered_position, delivered_at,
      acknowledged_epoch, acknowledged_position, acknowledged_at, installed_version)
    select project_id, 'product', epoch, position, ${at}, epoch, position / 2 + 100, ${at}, '1.0.0'
    from lifecycle_heads where project_id in (${listedProject(0)}, ${listedProject(1)}, ${listedProject(2)})`
})

/** Readers: members of three institutions, with Access to five projects. */
const theReaders = Effect.gen(function* () {
  const ids = numbers(readers).map(reader)
  yield* people(ids)
  yield* members("member", ids.flatMap((id, n) => [0, 1, 2].map((k) => [institutionId(n + k), id] as const)))
  yield* granted(ids.flatMap((person, n) =>
    numbers(5).map((k): Granted => ({
      id: AccessId.make(`read-${n}-${k}`),
      institution: institutionId(n + k),
      project: projectId(n + k),
      person,
    }))
  ))
})

/** Writes all of it; `count` is the number of Accesses that wait for a review. */
export const fill = (count: number) =>
  Effect.gen(function* () {
    const { owner: sql } = yield* Database
    const all = numbers(institutions)
    const each = all.flatMap((k) => numbers(seats).map((j) => k + j * institutions))
    yield* sql`insert into institutions (id, updated_at, name, status)
      select id, ${at}, 'Institution ' || id, 'active' from unnest(${all.map(institutionId)}::text[]) id`
    yield* people(numbers(operators).map(operator), true)
    yield* people([...each.map(sponsor), ...each.map(administrator), ...numbers(count).map(user)])
    yield* members("sponsor", each.map((n) => [institutionId(n), sponsor(n)]))
    yield* members("administrator", each.map((n) => [institutionId(n), administrator(n)]))
    yield* projects(all.flatMap((k) => [k, k + institutions].map((n) => [institutionId(n), projectId(n)] as const)))
    yield* granted(
      numbers(count).map((n): Granted => ({
        id: accessId(n),
        institution: institutionId(n),
        project: projectId(n),
        person: user(n),
      })),
    )
    yield* theReaders
    yield* theListed
    yield* sql`analyze`
  }).pipe(
    Effect.provide(AccessReviews.layer.pipe(
      Layer.provideMerge(AccessVersions.layer),
      Layer.provide(Layer.mergeAll(EventLog.layer, Roles.layer, Audit.layer)),
      Layer.provide(silent),
    )),
    // As in the program without a collector.
    Effect.provideService(References.TracerEnabled, false),
  )
