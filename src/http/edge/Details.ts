/**
 * The default `detail` of a problem, where its maker gave none: the numbers and names of the problem's own members, and
 * the limits of the HTTP edge, in words. The title already says what happened.
 */
import { maxBody } from "./Body.ts"

type Members = Readonly<Record<string, unknown>>

/** Bytes of the request line and all headers. */
export const maxHeaders = 8 * 1024

const list = (value: unknown, word = "or"): string => {
  const names = Array.isArray(value) ? value.map(String) : []
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`
}

const count = (value: unknown, noun: string) => `${String(value)} ${noun}${value === 1 ? "" : "s"}`

const freshness = ({ acr_values: acr, max_age: maxAge }: Members) => {
  const strong = typeof acr === "string" ? [`of strength ${acr.replaceAll(" ", " or ")}`] : []
  const fresh = typeof maxAge === "number" ? [`not older than ${count(maxAge, "second")}`] : []
  const asked = [...strong, ...fresh]
  return asked.length === 0 ? undefined : `Sign in again: this needs a sign-in ${asked.join(" and ")}.`
}

const rate = ({ limit, retry_after: wait, window_seconds: window }: Members) => {
  const most = typeof limit === "number" && typeof window === "number"
    ? `At most ${count(limit, "request")} in ${count(window, "second")}: t`
    : "T"
  return typeof wait === "number" ? `${most}ry again in ${count(wait, "second")}.` : undefined
}

const blocked = (members: Members) => {
  const blockers = members["blockers"]
  return Array.isArray(blockers) ? `Blocked by ${count(blockers.length, "item")}, listed under blockers.` : undefined
}

const snapshot = () => "Take a snapshot, and go on from its cursor."
const anotherProof = () => "Make another proof (POST /v1/me/link-proofs): a proof can be used once, within ten minutes."

const detailByCode: Readonly<Record<string, (members: Members) => string | undefined>> = {
  invalid_state: ({ allowed, state }) =>
    typeof state === "string" && Array.isArray(allowed) && allowed.length > 0
      ? `The state is ${state}; this needs ${list(allowed)}.`
      : undefined,
  version_conflict: ({ current_version: version }) =>
    typeof version === "number" ? `The current version is ${version}: read it again, and decide on that.` : undefined,
  insufficient_user_authentication: freshness,
  rate_limited: rate,
  broadcasts_in_flight: blocked,
  scheduled_emails: blocked,
  audience_required: ({ audiences }) => `Name one audience in aud: ${list(audiences)}.`,
  supplied_mismatch: ({ properties }) => `Leave out what the transmitter supplies: ${list(properties, "and")}.`,
  idempotency_key_reused: () => "Send another request under an idempotency key of its own.",
  idempotency_in_progress: ({ retry_after: wait }) => `Try again in ${count(wait, "second")} to get its answer.`,
  request_timeout: () => "Other callers needed the connection before the body had arrived: send the request again.",
  body_too_large: () => `A body may have ${maxBody / 1024} KiB.`,
  headers_too_large: () => `The request line and all headers may have ${maxHeaders / 1024} KiB together.`,
  unsupported_media_type: () => "Send the body as application/json, or as the document says of this path.",
  malformed_request: () => "Send it as HTTP, and as the document shows this path.",
  invalid_credentials: () => "Send a key of this service as Authorization: Bearer, or sign in again.",
  invalid_token: () =>
    "Send an access token of a configured issuer, for this service and an active person, that has not ended.",
  role_required: ({ scope }) =>
    typeof scope === "string"
      ? `The service needs an approved grant with the capability ${scope}, for the project's environment.`
      : undefined,
  forbidden: () => "This account may not do this: sign in as another one.",
  csrf_rejected: () => "Send it from a page of this service, or with a key instead of the cookie.",
  console_read_only: () => "This installation lets its console read only: use the API, or the command line.",
  auditor_reads_only: () => "Whoever is to decide must be no auditor: another person has to do this.",
  not_found: () => "Nothing has this path and these ids, or nothing that the caller may see.",
  method_not_allowed: () => "Use one of the methods that Allow names.",
  not_acceptable: () => "Accept the media type that the document shows for this path.",
  internal: () => "The fault is recorded: give the request_id to the operator of this service.",
  dependency_unavailable: () => "The database, or another service that this needs, does not answer: try again soon.",
  portal_binding_mismatch: () => "Complete the action in the portal session that started it, or start it again.",
  cursor_ahead: snapshot,
  cursor_epoch_changed: snapshot,
  cursor_expired: snapshot,
  chain_mismatch: snapshot,
  proof_consumed: anotherProof,
  proof_expired: anotherProof,
  intent_expired: () => "Start the action again: it has to be completed within ten minutes.",
  four_eyes_collapsed: () => "The two persons decided something together, so they cannot be merged into one.",
  request_exists: () => "The same request was made at this moment: wait until it is decided or has expired.",
  review_exists: () => "A review was proposed, or has ended, at this moment: read the list again.",
  website_exists: () => "The website was registered, or withdrawn, at this moment: read the list of projects again.",
  held: ({ retry_after: wait }) =>
    `The installation follows a restore or a fail-over and is held until an operator opens it: try again in ${
      count(wait, "second")
    }.`,
  outcome_unknown: ({ job_id: job }) => `Read job ${String(job)} until it has an outcome, before you send this again.`,
  domain_limit: () => "Remove a domain of the receiving account, or raise its plan, and accept again.",
  preferences_invalid: () => "Send an object of categories, each an object of channels and booleans.",
  misdirected_request: () => "Send the Host of this service: see PUBLIC_URL.",
}

/** The default `detail`; undefined where the members say no more than the title. */
export const detailOf = (problem: Members): string | undefined => detailByCode[String(problem["code"])]?.(problem)
