/**
 * The paths whose POST keeps a receipt under an Idempotency-Key, without `/v1/`, with `_` for a slash and for a slash
 * with a parameter: made of the OpenAPI document by `deno task client:contract`.
 */
// deno-fmt-ignore-file

export const keyedPaths = /^(admin_.*|api-keys_.*|console_embed-links|domain-transfers_.*|domains_.*|enrollments_.*|institutions_.*|jobs_.*|link-requests(_.*)?|me_.*|notifications_.*|operations_.*|people|policies_.*|projects_(_(launch-proposals|lifecycle-service-grants(_.*)?|owners))|webhook-deliveries_.*|webhooks_.*)$/
