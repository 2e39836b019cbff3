/** Tests of `held`: it refuses each answer that differs from the document. */
import { assert, describe, it } from "@effect/vitest"
import type { Answer } from "./IdentityClient.ts"
import { secret } from "./IdentityClient.ts"
import { operations } from "./Catalogue.ts"
import { held } from "./ConformsToSpec.ts"

const operation = operations.find(({ operationId }) => operationId === "requests.createPerson")!
const requestId = "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11"

const answer = (status: number, body: object, headers: Record<string, string>): Answer => ({
  status,
  headers: {
    "x-request-id": requestId,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  },
  text: JSON.stringify(body),
  body,
})

const person = {
  person_id: "p",
  issuer: "https://id.example",
  subject: "s",
  reason: "as we agreed",
  state: "active",
  version: 1,
  created_at: "2026-03-01T12:00:00.000Z",
  event_id: null,
  job_id: null,
  policy_review: null,
}
const json = { "content-type": "application/json" }
const made = (changes: object = {}, headers = {}) => answer(201, { ...person, ...changes }, { ...json, ...headers })

const problem = (changes: object = {}, headers = {}) =>
  answer(403, {
    type: "urn:bailiwick:problem:role_required",
    title: "The caller lacks the role that this needs",
    status: 403,
    detail: "no",
    instance: "/v1/people",
    code: "role_required",
    request_id: requestId,
    audit_id: requestId,
    ...changes,
  }, { "content-type": "application/problem+json", ...headers })

describe("held", () => {
  it("accepts a documented answer", () => {
    held(operation, made())
    held(operation, made({}, { "idempotency-replayed": "true" }))
    held(operation, problem())
  })

  const wrong: Record<string, Answer> = {
    "a status": { ...made(), status: 202 },
    "another status's body": { ...made(), status: 422 },
    "a media type": made({}, { "content-type": "text/html" }),
    "a member more": made({ email: "a@b.example" }),
    "a member less": answer(201, { ...person, state: undefined }, json),
    "a state": made({ state: "odd" }),
    "a time": made({ created_at: "yesterday" }),
    "a header": made({}, { etag: `"1"` }),
    "no request id": made({}, { "x-request-id": "" }),
    "what may be kept": made({}, { "cache-control": "public" }),
    "another's code": problem({ code: "last_owner", type: "urn:bailiwick:problem:last_owner" }),
    "another request id": problem({ request_id: "another" }),
    "no audit": problem({ audit_id: null }),
    "a path": problem({ instance: "/v1/people/secret" }),
    "the inside": problem({ detail: "SqlError: relation people" }),
    "a trace": made({ reason: "\n    at services/people/People.ts:12" }),
    "a secret": made({ reason: secret("a-secret-of-somebody") }),
  }
  for (const [name, one] of Object.entries(wrong)) {
    it(`refuses undocumented ${name}`, () => assert.throws(() => held(operation, one)))
  }
})
