/** Fixture of tests of requests and policy reviews: their services, all real, and Fern, an institution to ask. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import {
  AccessId,
  InstitutionId,
  type PersonId,
  type PolicyReviewId,
  type ProjectId,
  type ProviderJobId,
  RequestId,
} from "../../../schemas/BrandedIds.ts"
import { Enrollments } from "../../../services/decisions/Enrollments.ts"
import { PolicyDecisions } from "../../../services/decisions/PolicyDecisions.ts"
import { PolicyReviews } from "../../../services/requests/PolicyReviews.ts"
import { Requests } from "../../../services/decisions/Requests.ts"
import { invitationToken } from "../../../services/requests/RequestMail.ts"
import { accessOf } from "../../../services/access/AccessEndRows.ts"
import { AccessEnds } from "../../../services/access/AccessEnds.ts"
import { accessTimer } from "../../../services/access/AccessTerm.ts"
import { ServiceGrants } from "../../../services/access/ServiceGrants.ts"
import { Links } from "../../../services/links/Links.ts"
import { NewPeople } from "../../../services/people/NewPeople.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { fenced, NeedsTransaction } from "../../../services/platform/database/FencedCommand.ts"
import { BeforeWrite } from "../../../services/platform/database/FencedWrite.ts"
import { OneTimeTokens } from "../../../services/platform/security/OneTimeTokens.ts"
import { Timers } from "../../../services/platform/database/Timers.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { Vault } from "../../../services/platform/security/Vault.ts"
import { embedded } from "../../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { Projects } from "../../../services/projects/Projects.ts"
import { ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { reason } from "../../support/Fixtures.ts"
import { identity, institution, issuer, member, person } from "../../support/TestIdentity.ts"
import { tokens } from "../../support/TestTokens.ts"

const ring = JSON.stringify({ active: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } })

/** A service that may write people. */
export const writer = { issuer, clientId: "hr" }

export const services = PolicyDecisions.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(
    AccessEnds.layer,
    Requests.layer,
    Enrollments.layer,
    Projects.layer,
    Links.layer,
    NewPeople.layer({ writers: [`${writer.issuer} ${writer.clientId}`] }),
  )),
  Layer.provideMerge(Layer.mergeAll(
    PolicyReviews.layer,
    ServiceGrants.layer({ issuers: [issuer] }),
    ProviderJobs.layer.pipe(Layer.provide(embedded)),
  )),
  Layer.provideMerge(Layer.mergeAll(Roles.layer, Timers.layer, OneTimeTokens.layer, tokens)),
  Layer.provideMerge(Vault.layer({ keys: Redacted.make(ring), file: "/nowhere" })),
  Layer.provideMerge(identity),
)

/** Fern with a Sponsor and two administrators, and two operators; all of them from the feed. */
export const fixture = Effect.gen(function* () {
  const [fern, sam, ada, abe] = yield* Effect.all([institution(), person(), person(), person()])
  const [oz, ola, pat] = yield* Effect.all([person({ operator: true }), person({ operator: true }), person()])
  yield* member(fern, sam, "sponsor")
  yield* member(fern, ada, "administrator")
  yield* member(fern, abe, "administrator")
  return { fern, sam, ada, abe, oz, ola, pat }
})
export type Fixture = Effect.Success<typeof fixture>

/** The code that an effect fails with, or `done`. */
export const codeOf = <A, E extends object, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => String("code" in error ? error.code : "_tag" in error ? error._tag : error),
    onSuccess: () => "done",
  })

/** Runs a command as the API does: in two round trips, or in one transaction where it needs one or one is open. */
export const decided = <A, E extends object, R>(command: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const inOne = Effect.provideService(run(command), BeforeWrite, Effect.void)
    if (Option.isSome(yield* Effect.serviceOption(sql.transactionService))) return yield* inOne
    return yield* Effect.catchIf(
      fenced(sql, { turn: "a", admissions: [] }, command),
      (error) => error instanceof NeedsTransaction,
      () => inOne,
    )
  })

interface Opened {
  readonly policy_review: { readonly review_id: PolicyReviewId } | null
}

const reviewIdOf = (of: Opened | PolicyReviewId) => typeof of === "string" ? of : of.policy_review!.review_id

export const sign = (of: Opened | PolicyReviewId, role: string, personId: PersonId) =>
  Effect.flatMap(
    PolicyDecisions,
    (policies) => decided(policies.approve({ personId, reviewId: reviewIdOf(of), role, reason, stepUp: Effect.void })),
  )

export const decline = (of: Opened | PolicyReviewId, role: string, personId: PersonId) =>
  Effect.flatMap(
    PolicyDecisions,
    (policies) => decided(policies.decline({ personId, reviewId: reviewIdOf(of), role, reason, stepUp: Effect.void })),
  )

/** Fires all due timers, as the timers' loop does. */
export const fire = Effect.gen(function* () {
  const timers = yield* Timers
  const policies = yield* PolicyDecisions
  const ends = yield* AccessEnds
  const due = yield* timers.claim(["request-expire", "link-effective", "launch-check", accessTimer], 1_000)
  for (const { aggregate_id, kind } of due) {
    yield* kind === accessTimer
      ? run(ends.settle(AccessId.make(accessOf(aggregate_id))))
      : run(policies.settle(RequestId.make(aggregate_id)))
  }
  yield* timers.giveBack(due)
  return due.length
})

export const requestRow = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{
    state: string
    revision: number
    result_id: string | null
    event_id: string | null
    job_id: ProviderJobId | null
    mail_id: string | null
    effective_at: Date | null
    held_reason: string | null
  }>`select state, revision, result_id, event_id::text as event_id, job_id, mail_id::text as mail_id, effective_at,
    held_reason from requests where id = ${id}::uuid`
  return row!
})

/** The institution that an approved request founded. */
export const founded = (requestId: RequestId) =>
  Effect.map(requestRow(requestId), ({ result_id }) => InstitutionId.make(result_id!))

/** Kinds of a project's events, in order. */
export const told = Effect.fnUntraced(function* (projectId: ProjectId) {
  const { sql } = yield* Database
  const rows = yield* sql<{ kind: string }>`
    select kind from lifecycle_events where project_id = ${projectId} order by position`
  return rows.map(({ kind }) => kind)
})

export const membershipsOf = Effect.fnUntraced(function* (institutionId: InstitutionId, personId: PersonId) {
  const { sql } = yield* Database
  return yield* sql<{ role: string; state: string; made_by: PersonId | null; approved_by: ReadonlyArray<PersonId> }>`
    select role, state, made_by, approved_by from institution_memberships
    where institution_id = ${institutionId} and person_id = ${personId} and not removed order by role`
})

/** The token of an invitation, as its mail shows it. */
export const tokenOf = Effect.fnUntraced(function* (enrollmentId: RequestId) {
  const { sql } = yield* Database
  const [row] = yield* sql<{ token_kid: string; token_nonce: Uint8Array }>`
    select token_kid, token_nonce from requests where id = ${enrollmentId}::uuid`
  const input = { kind: invitationToken, id: enrollmentId, kid: row!.token_kid, nonce: row!.token_nonce }
  return Redacted.value((yield* OneTimeTokens).derive(input))
})

export const organization = (personId: PersonId) =>
  Effect.flatMap(Requests, (requests) =>
    decided(requests.organization({
      personId,
      name: "Moss",
      organization_type: "school",
      website: "https://moss.example",
      domains: ["Moss.example", "moss.example", "bücher.example"],
      purpose: "to teach what we know",
      contacts: [{ name: "Mo", email: "mo@moss.example" }, { email: "mo@moss.example", name: "Mo" }],
      reason,
    })))

/** Asks for a change of a member's role and state. */
export const changeMembership = (
  { fern }: Pick<Fixture, "fern">,
  personId: PersonId,
  person_id: PersonId,
  role: "sponsor" | "administrator" | "member",
  state: "invited" | "active" | "suspended" | "ended",
) =>
  Effect.flatMap(
    Requests,
    (requests) => decided(requests.membership({ institutionId: fern, personId, person_id, role, state, reason })),
  )

export const enroll = (institutionId: InstitutionId, personId: PersonId, recipient: string) =>
  Effect.flatMap(
    Enrollments,
    (enrollments) => decided(enrollments.enroll({ institutionId, personId, recipient, reason })),
  )

export const acceptInvitation = (personId: PersonId, token: string) =>
  Effect.flatMap(Enrollments, (enrollments) => decided(enrollments.accept({ personId, token })))

export const revokeInvitation = (institutionId: InstitutionId, enrollmentId: RequestId, personId: PersonId) =>
  Effect.flatMap(
    Enrollments,
    (enrollments) => decided(enrollments.revoke({ institutionId, enrollmentId, personId, reason })),
  )

export const renew = (institutionId: InstitutionId, enrollmentId: RequestId, personId: PersonId) =>
  Effect.flatMap(
    Enrollments,
    (enrollments) => decided(enrollments.renew({ institutionId, enrollmentId, personId, reason })),
  )

/** The audit records of a request, in order. */
export const auditOf = Effect.fnUntraced(function* (requestId: RequestId) {
  const { sql } = yield* Database
  return yield* sql<{ action: string; actor: string }>`
    select action, actor from audit_records where subject = ${`request:${requestId}`} order by id`
})

export const website = (
  { fern, sam }: Pick<Fixture, "fern" | "sam">,
  ownerId: PersonId,
  more: { readonly environment?: "staging" | "production"; readonly website?: string; readonly by?: PersonId } = {},
  uris: ReadonlyArray<string> = ["https://portal.fern.example/callback"],
) =>
  Effect.flatMap(Projects, (projects) =>
    run(projects.register({
      institutionId: fern,
      personId: more.by ?? sam,
      name: "Portal",
      website: more.website ?? `https://${randomUUID()}.example`,
      connector_kind: "standard_oidc",
      owner_person_id: ownerId,
      environment: more.environment ?? "staging",
      redirect_uris: uris,
      requested_scopes: ["openid", "openid", "email"],
      reason,
    })))

export const propose = (projectId: ProjectId, personId: PersonId, launch_url = "https://portal.fern.example/") =>
  Effect.flatMap(Projects, (projects) => run(projects.proposeLaunch({ projectId, personId, launch_url, reason })))

export const withdraw = (
  institutionId: InstitutionId,
  projectId: ProjectId,
  personId: PersonId,
  expected_version: number,
) =>
  Effect.flatMap(
    Projects,
    (projects) => run(projects.withdraw({ institutionId, projectId, personId, expected_version, reason })),
  )

export const own = (projectId: ProjectId, personId: PersonId, person_id: PersonId, active = true) =>
  Effect.flatMap(
    Projects,
    (projects) => run(projects.changeOwner({ projectId, personId, person_id, active, reason })),
  )

export const workJobs = Effect.flatMap(ProviderJobs, ({ work }) => Effect.repeat(work, { while: (more) => more }))

export const askAccess = (institution_id: InstitutionId, project_id: ProjectId, personId: PersonId) =>
  Effect.flatMap(Requests, (requests) => decided(requests.access({ institution_id, project_id, personId, reason })))

export const projectRow = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [row] = yield* sql<{
    state: string
    revision: number
    held_reason: string | null
    client_id: string | null
    launch_url: string | null
  }>`select state, revision, held_reason, client_id, launch_url from projects where id = ${id}`
  assert.isDefined(row)
  return row!
})
