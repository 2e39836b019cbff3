/** The HTTP request for each kind of body in the field tables, and refusals by state of well-formed values. */
import { decidedKinds, decidedRows } from "../../../schemas/identity/DecidedRows.ts"
import { contact, kinds, rows as specified } from "../../../schemas/identity/FieldRows.ts"
import { type Headers, key } from "./IdentityClient.ts"
import { type Asked, catalogue } from "./Catalogue.ts"

export type Body = Readonly<Record<string, unknown>>

/** The operation that takes each kind. */
const operations: Readonly<Record<string, string>> = {
  "RequestFields": "requests.createOrganizationRequest",
  "Website registration": "websites.registerWebsite",
  "RequestCreate": "requests.createAccessRequest",
  "PersonCreate": "requests.createPerson",
  "Transition": "websites.withdrawWebsite",
  "EnrollmentCreate": "enrollments.createEnrollment",
  "LaunchCreate": "websites.proposeLaunch",
  "OwnerChange": "websites.changeProjectOwner",
  "Approval": "policies.approvePolicyReview",
  "LinkCreate": "requests.createLinkRequest",
  "Contact": "requests.createOrganizationRequest",
  "Reason": "access-grant-reviews.revokeAccessGrantReview",
  "GrantProposal": "access-grant-reviews.proposeAccessGrantReview",
  "LifecycleServiceProposal": "lifecycle-service-grants.proposeLifecycleServiceGrant",
  "LifecycleServiceApproval": "lifecycle-service-grants.approveLifecycleServiceGrant",
  "StartAction": "me.startCredentialAction",
  "FinishAction": "me.completeCredentialAction",
  "Grant listing": "lifecycle-service-grants.listLifecycleServiceGrants",
  "Idempotency header": "requests.createOrganizationRequest",
}

/** Refusals by state of values that the form accepts; values of any other field are accepted like the case's own. */
export const judged: Readonly<Record<string, ReadonlyArray<number>>> = {
  "Website registration | owner_person_id": [409],
  "RequestCreate | institution_id": [404],
  "RequestCreate | project_id": [404],
  "Transition | expected_version": [200, 409],
  "LaunchCreate | launch_url": [409],
  "OwnerChange | person_id": [404],
  "Approval | role": [409],
  "LinkCreate | proof_id": [404],
  "GrantProposal | access_id": [404],
  "GrantProposal | access_version": [201, 409],
  "GrantProposal | grant_event_id": [201, 409],
  // The fixture's project is in production.
  "LifecycleServiceProposal | environment": [201, 409],
  "LifecycleServiceApproval | expected_version": [200, 409],
  // A time that is more than a year off; a target of an action that has none.
  "LifecycleServiceProposal | expires_at": [201, 422],
  "StartAction | target_id": [201, 422],
}

export const minimal: Readonly<Record<string, Body>> = Object.fromEntries(
  Object.entries({ ...kinds, ...decidedKinds }).map(([kind, { minimal }]) => [kind, minimal]),
)
export const rows = [...specified, ...decidedRows]
const organization = kinds.RequestFields.minimal

/** Fields whose values are never repeated: possible secrets, and headers. */
export const silent = new Set(["StartAction", "FinishAction", "Idempotency header"])

export const section = (kind: string): ReadonlyArray<string | number> =>
  kind === "Grant listing"
    ? ["query"]
    : kind === "Idempotency header"
    ? ["header"]
    : kind === "Contact"
    ? ["body", "contacts", 0]
    : ["body"]

/** A request of this kind with one field set. */
export const withField = (
  kind: string,
  asked: Asked,
  field: string,
  value: unknown,
): Asked & { readonly key: Headers } => {
  if (kind === "Grant listing") return { ...asked, query: `?${field}=${encodeURIComponent(String(value))}`, key: {} }
  if (kind === "Idempotency header") return { ...asked, body: organization, key: { [field]: String(value) } }
  if (kind === "Contact") {
    return { ...asked, body: { ...organization, contacts: [{ ...contact, [field]: value }] }, key: key() }
  }
  return { ...asked, body: { ...asked.body, [field]: value }, key: key() }
}

export const nowhere = {
  institution_id: "nowhere",
  project_id: "nowhere",
  review_id: "nowhere",
  grant_id: "nowhere",
  intent_id: "nowhere",
}

export const caseOf = (kind: string) => catalogue.find(({ operation }) => operation === operations[kind])!
