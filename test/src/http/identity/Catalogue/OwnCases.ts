/** Operations of a person's own account. */
import { Effect, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { invitationToken } from "../../../../../services/requests/RequestMail.ts"
import { Database } from "../../../../../services/platform/database/Database.ts"
import { run } from "../../../../../services/platform/database/UnitOfWork.ts"
import { Audit } from "../../../../../services/platform/observability/Audit.ts"
import { OneTimeTokens } from "../../../../../services/platform/security/OneTimeTokens.ts"
import { EmbeddedIssuer } from "../../../../../src/embedded/EmbeddedIssuer.ts"
import { reason } from "../../../../support/Fixtures.ts"
import { institution, issuer, member, person, project } from "../../../../support/TestIdentity.ts"
import { tokenFor } from "../../../../support/TestTokens.ts"
import { ask, done, secret } from "../IdentityClient.ts"
import { type Case } from "./Case.ts"

const nothing = () => Effect.succeed({})
const read = (operation: string): Case => ({
  operation,
  by: "stranger",
  second: "member",
  asked: nothing,
  status: 200,
})

const binding = () => secret(`portal-binding-${randomUUID()}`)

/** A request for an institution, as a person sends it. */
export const organization = {
  name: "Moss",
  organization_type: "school",
  website: "https://moss.example",
  domains: ["moss.example"],
  purpose: "to teach what we know",
  contacts: [{ name: "Mo", email: "mo@moss.example" }],
  reason,
}

/** A token of a new person at the issuer, to be linked. */
const unknownIdentity = Effect.gen(function* () {
  const { mintAccessToken } = yield* EmbeddedIssuer
  return secret(yield* mintAccessToken({ issuer, subject: randomUUID(), clientId: "portal" }))
})

const proofOf = Effect.fnUntraced(function* (personId: string) {
  const token = yield* unknownIdentity
  return done(yield* ask(personId, "POST", "/v1/me/link-proofs", { token })).proof_id as string
})

/** A request to link the identity of `personId`, who must be in no institution, with a new person's. */
const linkOf = Effect.fnUntraced(function* (personId: string) {
  const { sql } = yield* Database
  // A person has one such request at a time.
  const [open] = yield* sql<{ id: string }>`
    select id::text as id from requests where kind = 'link' and person_id = ${personId} and state = 'pending_review'`
  if (open !== undefined) return open.id
  const author = yield* person()
  // An earlier `sessions.revoke_others` counts by the clock, and sign-ins differ by whole seconds.
  const token = secret(yield* tokenFor(personId, { authTime: Math.floor(Date.now() / 1_000) + 1 }))
  const { proof_id } = done(yield* ask(author, "POST", "/v1/me/link-proofs", { token }))
  const { link_request_id } = done(yield* ask(author, "POST", "/v1/link-requests", { proof_id, reason }))
  return link_request_id as string
})

/**
 * The token of an invitation to a person's own address, into a new institution: an approver is not independent of a
 * person let in.
 */
export const invitation = Effect.fnUntraced(function* (recipient: string) {
  const [moss, sponsor, administrator] = [yield* institution(), yield* person(), yield* person()]
  yield* member(moss, sponsor, "sponsor")
  yield* member(moss, administrator, "administrator")
  const path = `/v1/institutions/${moss}/enrollments`
  const { enrollment_id, policy_review } = done(yield* ask(sponsor, "POST", path, { recipient, reason }))
  const approval = `/v1/policies/reviews/${policy_review.review_id}/approve`
  done(yield* ask(administrator, "POST", approval, { role: "administrator", reason }))
  const { sql } = yield* Database
  const [row] = yield* sql<{ token_kid: string; token_nonce: Uint8Array }>`
    select token_kid, token_nonce from requests where id = ${enrollment_id}::uuid`.pipe(Effect.orDie)
  const input = { kind: invitationToken, id: enrollment_id, kid: row!.token_kid, nonce: row!.token_nonce }
  return secret(Redacted.value((yield* OneTimeTokens).derive(input)))
})

/** The audit record of a decision of this person, which may be an auditor: its leaf is in the log, or waits for its place. */
const recordedDecision = Effect.fnUntraced(function* (personId: string) {
  const audit = yield* Audit
  const [id] = yield* run(audit.append({
    action: "service-grant.approved",
    actor: `person:${personId}`,
    subject: `service-grant:${randomUUID()}`,
    outcome: "done",
    decision: true,
  }))
  return id!
}, Effect.orDie)

export const own: ReadonlyArray<Case> = [
  read("me.me"),
  read("me.freshness"),
  read("me.listSessions"),
  read("me.listAuthenticators"),
  read("me.credentialCapabilities"),
  read("me.noticeSettings"),
  {
    operation: "me.setNoticeSettings",
    by: "stranger",
    second: "member",
    status: 200,
    asked: () => Effect.succeed({ body: { delivery: "immediately" } }),
  },
  read("requests.listOwnRequests"),
  read("campaigns.listOwnCampaignItems"),
  read("policies.listPolicyReviews"),
  read("operations.operations"),
  read("operator.listOwnAudit"),
  read("operator.listDecisionsAboutYou"),
  {
    operation: "operator.proveOwnDecision",
    by: "stranger",
    second: "member",
    status: 200,
    asked: (_stage, personId) => Effect.map(recordedDecision(personId), (record_id) => ({ params: { record_id } })),
  },
  read("institutions.listInstitutions"),
  {
    operation: "institutions.listPersonNames",
    by: "stranger",
    second: "member",
    status: 200,
    asked: (stage, personId) => Effect.succeed({ query: `?ids=${stage.people.sponsor},${personId}` }),
  },
  {
    operation: "me.startCredentialAction",
    by: "stranger",
    second: "member",
    status: 201,
    asked: () =>
      Effect.succeed({
        body: { kind: "passkey.register", label: "Laptop" },
        headers: { "x-portal-binding": binding() },
      }),
  },
  {
    operation: "me.completeCredentialAction",
    by: "stranger",
    second: "member",
    status: 200,
    asked: Effect.fnUntraced(function* (_stage, personId) {
      const headers = { "x-portal-binding": binding() }
      const start = { kind: "sessions.revoke_others" }
      const { intent_id } = done(yield* ask(personId, "POST", "/v1/me/credential-actions", start, headers))
      return { params: { intent_id }, body: { proof: { type: "confirm", acknowledged: true } }, headers }
    }),
  },
  {
    operation: "requests.createOrganizationRequest",
    by: "stranger",
    second: "member",
    status: 201,
    asked: () => Effect.succeed({ body: organization }),
  },
  {
    operation: "requests.createAccessRequest",
    by: "stranger",
    second: "member",
    status: 201,
    asked: (stage) =>
      Effect.map(project(stage.institution), (project_id) => ({
        body: { institution_id: stage.institution, project_id, reason },
      })),
  },
  {
    operation: "requests.createTemporaryAccessRequest",
    by: "stranger",
    second: "member",
    status: 201,
    asked: (stage) =>
      Effect.map(project(stage.institution), (project_id) => ({
        body: { institution_id: stage.institution, project_id, ends_at: "2999-01-01T00:00:00Z", reason },
      })),
  },
  {
    operation: "requests.withdrawRequest",
    by: "stranger",
    second: "member",
    status: 200,
    asked: (_stage, personId) =>
      Effect.map(
        Effect.map(ask(personId, "POST", "/v1/me/organization-requests", organization), done),
        ({ request_id }) => ({ params: { request_id }, body: { reason } }),
      ),
  },
  {
    operation: "requests.createLinkProof",
    by: "stranger",
    second: "member",
    status: 201,
    asked: () => Effect.map(unknownIdentity, (token) => ({ body: { token } })),
  },
  {
    operation: "requests.createLinkRequest",
    by: "stranger",
    second: "member",
    status: 201,
    asked: (_stage, personId) => Effect.map(proofOf(personId), (proof_id) => ({ body: { proof_id, reason } })),
  },
  {
    operation: "requests.objectToLinkRequest",
    by: "stranger",
    second: "member",
    status: 200,
    asked: (_stage, personId) =>
      Effect.map(linkOf(personId), (link_request_id) => ({ params: { link_request_id }, body: { reason } })),
  },
  {
    operation: "enrollments.acceptEnrollment",
    by: "stranger",
    second: "member",
    status: 200,
    asked: (_stage, personId) => Effect.map(invitation(`${personId}@example.com`), (token) => ({ params: { token } })),
  },
]
