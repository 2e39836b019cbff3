/** The POSTs of the specification: whether each needs an idempotency key, and the status of a valid request. */
export const specified: Readonly<
  Record<string, { readonly key: "required" | "optional"; readonly status: 200 | 201 }>
> = {
  "/v1/me/credential-actions": { key: "optional", status: 201 },
  "/v1/me/credential-actions/{intent_id}/complete": { key: "optional", status: 200 },
  "/v1/institutions/{institution_id}/access-grant-reviews": { key: "required", status: 201 },
  "/v1/institutions/{institution_id}/access-grant-reviews/{review_id}/approve": { key: "required", status: 200 },
  "/v1/institutions/{institution_id}/access-grant-reviews/{review_id}/revoke": { key: "required", status: 200 },
  "/v1/projects/{project_id}/lifecycle-service-grants": { key: "required", status: 201 },
  "/v1/projects/{project_id}/lifecycle-service-grants/{grant_id}/approve": { key: "required", status: 200 },
  "/v1/projects/{project_id}/lifecycle-service-grants/{grant_id}/revoke": { key: "required", status: 200 },
  "/v1/me/organization-requests": { key: "required", status: 201 },
  "/v1/institutions/{institution_id}/websites": { key: "required", status: 201 },
  "/v1/me/access-requests": { key: "required", status: 201 },
  "/v1/people": { key: "required", status: 201 },
  "/v1/institutions/{institution_id}/websites/{project_id}/withdraw": { key: "required", status: 200 },
  "/v1/institutions/{institution_id}/enrollments": { key: "required", status: 201 },
  "/v1/projects/{project_id}/launch-proposals": { key: "required", status: 201 },
  "/v1/projects/{project_id}/owners": { key: "required", status: 200 },
  "/v1/policies/reviews/{review_id}/approve": { key: "required", status: 200 },
  "/v1/link-requests": { key: "required", status: 201 },
}

/** Our own POSTs beside them. */
export const extras = [
  "/v1/me/link-proofs",
  "/v1/link-requests/{link_request_id}/object",
  "/v1/enrollments/{token}/accept",
  "/v1/institutions/{institution_id}/enrollments/{enrollment_id}/revoke",
  "/v1/institutions/{institution_id}/memberships",
  "/v1/policies/reviews/{review_id}/decline",
  "/v1/jobs/{job_id}/retry",
  "/v1/jobs/{job_id}/reconcile",
  "/v1/jobs/{job_id}/repair",
  "/v1/operations/dead-letters/replay",
  "/v1/operations/dead-letters/{delivery_id}/replay",
  "/v1/operations/signing-keys/announce",
  "/v1/operations/signing-keys/publish",
  "/v1/operations/signing-keys/activate",
  "/v1/operations/signing-keys/{kid}/retire",
  "/v1/operations/signing-keys/{kid}/compromise",
  "/v1/operations/installation/open",
  "/v1/operations/rollouts/{project_id}",
  "/v1/operations/mails/{mail_id}/retry",
  "/v1/operations/mails/{mail_id}/forget",
  "/v1/operations/intake-rejects/{reject_id}/retry",
  "/v1/operations/intake-rejects/{reject_id}/discard",
]
