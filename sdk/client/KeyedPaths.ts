/**
 * The paths whose POST keeps a receipt under an Idempotency-Key, without `/v1/`, with `_` for a slash and for a slash
 * with a parameter: made of the OpenAPI document by `deno task client:contract`.
 */
// deno-fmt-ignore-file

export const keyedPaths = /^(api-keys_|console_embed-links|enrollments__accept|institutions_(_(access-grant-reviews(_(_(approve|revoke)))?|enrollments(__revoke)?|memberships|websites(__withdraw)?))|jobs_(_(reconcile|repair|retry))|link-requests(__object)?|me_(access-requests|credential-actions(__complete)?|link-proofs|organization-requests)|operations_(dead-letters_(replay|_replay)|installation_open|intake-rejects_(_(discard|retry))|mails_(_(forget|retry))|rollouts_|signing-keys_(activate|announce|publish|_(compromise|retire)))|people|policies_(reviews_(_(approve|decline)))|projects_(_(launch-proposals|lifecycle-service-grants(_(_(approve|revoke)))?|owners))|webhook-deliveries_(_(cancel|replay|retry))|webhooks_((_(replay|rotate-secret|test))?))$/
