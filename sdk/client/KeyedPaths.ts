/**
 * The paths whose POST keeps a receipt under an Idempotency-Key, without `/v1/` and the names of their parameters: made
 * of the OpenAPI document by `deno task client:contract`.
 */
// deno-fmt-ignore-file

export const keyedPaths: ReadonlySet<string> = new Set(
  "enrollments//accept institutions//access-grant-reviews//approve institutions//access-grant-reviews//revoke institutions//access-grant-reviews institutions//enrollments//revoke institutions//enrollments institutions//memberships institutions//websites//withdraw institutions//websites jobs//reconcile jobs//repair jobs//retry link-requests//object link-requests me/access-requests me/credential-actions//complete me/credential-actions me/link-proofs me/organization-requests operations/dead-letters/replay operations/dead-letters//replay operations/installation/open operations/intake-rejects//discard operations/intake-rejects//retry operations/mails//forget operations/mails//retry operations/rollouts/ operations/signing-keys/activate operations/signing-keys/announce operations/signing-keys//compromise people policies/reviews//approve policies/reviews//decline projects//launch-proposals projects//lifecycle-service-grants//approve projects//lifecycle-service-grants//revoke projects//lifecycle-service-grants projects//owners webhook-deliveries//cancel webhook-deliveries//retry".split(" "),
)
