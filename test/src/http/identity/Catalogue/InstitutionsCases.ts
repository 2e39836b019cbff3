/** Operations of an institution: reviews of Access, invitations, roles, websites, policy reviews; and people. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { reason } from "../../../../support/Fixtures.ts"
import { access, issuer, member, person } from "../../../../support/TestIdentity.ts"
import { ask, done } from "../IdentityClient.ts"
import type { IdentityStage, Who } from "../IdentityStage.ts"
import { type Asked, type Case } from "./Case.ts"

const reviews = ({ institution }: IdentityStage) => `/v1/institutions/${institution}/access-grant-reviews`

const proposal = Effect.fnUntraced(function* (stage: IdentityStage) {
  const access_id = yield* access(stage.institution, stage.project, yield* person())
  return { access_id, access_version: 1, reason }
})

/** A proposed review that waits for its administrator. */
export const proposed = Effect.fnUntraced(function* (stage: IdentityStage) {
  const receipt = done(yield* ask(stage.people.sponsor, "POST", reviews(stage), yield* proposal(stage)))
  return { params: { institution_id: stage.institution, review_id: receipt.review_id as string }, body: { reason } }
})

const inInstitution = ({ institution }: IdentityStage) => ({ institution_id: institution })

const registration = (owner_person_id: string) => ({
  name: "Portal",
  website: `https://${randomUUID()}.example`,
  owner_person_id,
  environment: "staging",
  redirect_uris: ["https://portal.fern.example/callback"],
  requested_scopes: ["openid"],
  reason,
})

/** A Sponsor's website; its review waits for an administrator, who is not independent of its owner afterwards. */
const registered = Effect.fnUntraced(function* (stage: IdentityStage, ownerId: string) {
  const path = `/v1/institutions/${stage.institution}/websites`
  return done(yield* ask(stage.people.sponsor, "POST", path, registration(ownerId)))
})

const openReview = Effect.fnUntraced(function* (stage: IdentityStage) {
  const { policy_review } = yield* registered(stage, yield* person())
  return { params: { review_id: policy_review.review_id as string }, body: { role: "administrator", reason } }
})

const change = Effect.fnUntraced(function* (stage: IdentityStage) {
  const body = { person_id: yield* person(), role: "member", state: "active", reason }
  return { params: inInstitution(stage), body }
})

/** An invitation that waits for its review. */
const enrolled = Effect.fnUntraced(function* (stage: IdentityStage) {
  const path = `/v1/institutions/${stage.institution}/enrollments`
  const asked = { recipient: `${randomUUID()}@example.com`, reason }
  const { enrollment_id } = done(yield* ask(stage.people.sponsor, "POST", path, asked))
  return { params: { ...inInstitution(stage), enrollment_id: enrollment_id as string }, body: { reason } }
})

const reading = (operation: string, query?: string): Case => ({
  operation: `institutions.${operation}`,
  by: "sponsor",
  second: "operator",
  status: 200,
  asked: (stage) => Effect.succeed({ params: inInstitution(stage), ...(query === undefined ? {} : { query }) }),
})

/** A decision about an Access, by a person who answers for it. */
const answering = (operation: string): Case => ({
  operation: `periodic-reviews.${operation}`,
  by: "sponsor",
  second: "administrator",
  status: 201,
  asked: (stage) =>
    Effect.map(proposal(stage), ({ access_id }) => ({
      params: { ...inInstitution(stage), access_id },
      body: { expected_version: 1, reason },
    })),
})

const campaigns = ({ institution }: IdentityStage) => `/v1/institutions/${institution}/campaigns`

/** The body of a campaign over one new Access to the project of `owner`. */
const campaign = Effect.fnUntraced(function* (stage: IdentityStage) {
  const { access_id } = yield* proposal(stage)
  return { name: "Spring", reason, deadline: new Date(Date.now() + 86_400_000).toISOString(), access_ids: [access_id] }
})

/** A campaign, and its one item. */
const opened = Effect.fnUntraced(function* (stage: IdentityStage) {
  const { administrator } = stage.people
  const { campaign_id } = done(yield* ask(administrator, "POST", campaigns(stage), yield* campaign(stage)))
  const { items } = done(yield* ask(administrator, "GET", `${campaigns(stage)}/${campaign_id}/items`))
  return { ...inInstitution(stage), campaign_id: campaign_id as string, item_id: items[0].item_id as string }
})

const inCampaign = (operation: string, by: Who, second: Who, more: Pick<Asked, "body" | "query"> = {}): Case => ({
  operation: `campaigns.${operation}`,
  by,
  second,
  status: 200,
  asked: (stage) =>
    Effect.map(opened(stage), ({ item_id, ...params }) => ({
      params: operation.endsWith("Item") ? { ...params, item_id } : params,
      ...more,
    })),
})

export const institutions: ReadonlyArray<Case> = [
  reading("getInstitution"),
  reading("listMembers", "?limit=2"),
  reading("listEnrollments", "?limit=2"),
  reading("listAccess", "?limit=2&at=2026-01-01T00:00:00Z"),
  {
    operation: "institutions.explainAccess",
    by: "sponsor",
    second: "operator",
    status: 200,
    asked: (stage) =>
      Effect.map(proposal(stage), ({ access_id }) => ({ params: { ...inInstitution(stage), access_id } })),
  },
  {
    operation: "institutions.shortenAccess",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: (stage) =>
      Effect.map(proposal(stage), ({ access_id }) => ({
        params: { ...inInstitution(stage), access_id },
        body: { expected_version: 1, ends_at: "2999-01-01T00:00:00Z", reason },
      })),
  },
  { ...reading("listOverdueReviews", "?limit=2"), operation: "periodic-reviews.listOverdueReviews" },
  answering("confirmAccess"),
  answering("proposeAccessRevocation"),
  { ...reading("listCampaigns", "?limit=2"), operation: "campaigns.listCampaigns" },
  {
    operation: "campaigns.openCampaign",
    by: "administrator",
    second: "administrator2",
    status: 201,
    asked: (stage) => Effect.map(campaign(stage), (body) => ({ params: inInstitution(stage), body })),
  },
  inCampaign("getCampaign", "sponsor", "operator"),
  inCampaign("rescheduleCampaign", "administrator", "administrator2", {
    body: { deadline: new Date(Date.now() + 2 * 86_400_000).toISOString(), reason },
  }),
  inCampaign("closeCampaign", "administrator", "administrator2", { body: { reason } }),
  inCampaign("listCampaignItems", "sponsor", "operator", { query: "?limit=2&state=open" }),
  inCampaign("delegateCampaignItem", "administrator", "owner", { body: { person_id: null, reason } }),
  inCampaign("answerCampaignItem", "owner", "owner2", { body: { answer: "confirm", reason } }),
  {
    operation: "access-grant-reviews.listAccessGrantReviews",
    by: "sponsor",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.succeed({ params: inInstitution(stage), query: "?limit=100" }),
  },
  {
    operation: "access-grant-reviews.getAccessGrantReview",
    by: "sponsor",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.map(proposed(stage), ({ params }) => ({ params })),
  },
  {
    operation: "access-grant-reviews.getAccessGrantEvidence",
    by: "sponsor",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.map(proposed(stage), ({ params }) => ({ params })),
  },
  {
    operation: "access-grant-reviews.getEvidencePack",
    by: "sponsor",
    second: "administrator",
    status: 200,
    asked: (stage) => Effect.succeed({ params: inInstitution(stage), query: "?since=2026-01-01T00:00:00Z" }),
  },
  {
    operation: "access-grant-reviews.proposeAccessGrantReview",
    by: "sponsor",
    second: "sponsor2",
    status: 201,
    asked: (stage) => Effect.map(proposal(stage), (body) => ({ params: inInstitution(stage), body })),
  },
  {
    operation: "access-grant-reviews.approveAccessGrantReview",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: proposed,
  },
  {
    operation: "access-grant-reviews.revokeAccessGrantReview",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: proposed,
  },
  {
    operation: "enrollments.createEnrollment",
    by: "sponsor",
    second: "administrator",
    status: 201,
    asked: (stage) =>
      Effect.succeed({
        params: inInstitution(stage),
        body: { recipient: `${randomUUID()}@example.com`, reason },
      }),
  },
  {
    operation: "enrollments.revokeEnrollment",
    by: "administrator",
    second: "sponsor",
    status: 200,
    asked: enrolled,
  },
  {
    operation: "enrollments.renewEnrollment",
    by: "administrator",
    second: "sponsor",
    status: 201,
    asked: (stage) =>
      Effect.tap(enrolled(stage), ({ body, params: { enrollment_id } }) => {
        const path = `/v1/institutions/${stage.institution}/enrollments/${enrollment_id}/revoke`
        return Effect.map(ask(stage.people.sponsor, "POST", path, body), done)
      }),
  },
  {
    operation: "enrollments.changeMembership",
    by: "administrator",
    second: "sponsor",
    status: 201,
    asked: change,
  },
  {
    operation: "enrollments.requestAuthenticatorReset",
    by: "administrator",
    second: "sponsor",
    status: 201,
    asked: Effect.fnUntraced(function* (stage) {
      const lost = yield* person()
      yield* member(stage.institution, lost, "member")
      return { params: inInstitution(stage), body: { person_id: lost, reason } }
    }),
  },
  {
    operation: "websites.registerWebsite",
    by: "sponsor",
    second: "administrator",
    status: 201,
    asked: (stage) =>
      Effect.map(person(), (ownerId) => ({ params: inInstitution(stage), body: registration(ownerId) })),
  },
  {
    operation: "websites.listProjects",
    by: "sponsor",
    second: "operator",
    status: 200,
    asked: (stage) => Effect.succeed({ params: inInstitution(stage), query: "?limit=100" }),
  },
  {
    operation: "websites.listRequestableProjects",
    by: "member",
    second: "sponsor",
    status: 200,
    asked: (stage) => Effect.succeed({ params: inInstitution(stage), query: "?limit=100" }),
  },
  {
    operation: "websites.withdrawWebsite",
    by: "administrator",
    second: "owner",
    status: 200,
    asked: (stage) =>
      Effect.map(registered(stage, stage.people.owner), ({ project_id, version }) => ({
        params: { ...inInstitution(stage), project_id },
        body: { expected_version: version, reason },
      })),
  },
  {
    operation: "policies.getPolicyReview",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: (stage) => Effect.map(openReview(stage), ({ params }) => ({ params })),
  },
  {
    operation: "policies.approvePolicyReview",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: openReview,
  },
  {
    operation: "policies.declinePolicyReview",
    by: "administrator",
    second: "administrator2",
    status: 200,
    asked: openReview,
  },
  {
    operation: "requests.createPerson",
    by: "operator",
    second: "operator",
    status: 201,
    asked: () => Effect.sync(() => ({ body: { issuer, subject: randomUUID(), reason } })),
  },
]
