/** The document of the identity API, compared with the specification. */
import { assert, describe, it } from "@effect/vitest"
import { sample } from "../../../../src/http/docs/Schemas.ts"
import { at, resolved } from "../../../../src/http/docs/DocumentJson.ts"
import { operations, type Schema, spec } from "./Catalogue.ts"
import { admits } from "./ConformsToSpec.ts"
import { extras, specified } from "./SpecTable.ts"

const reads: ReadonlyArray<string> = [
  "/v1/me",
  "/v1/me/freshness",
  "/v1/me/sessions",
  "/v1/me/authenticators",
  "/v1/me/credential-actions",
  "/v1/me/notice-settings",
  "/v1/institutions/{institution_id}/access-grant-reviews",
  "/v1/projects/{project_id}/lifecycle-service-grants",
  "/v1/operations",
  "/v1/operations/diagnostics",
  "/v1/jobs",
]

/** The fields of each body, and those that must be sent: the specification's tables. */
const bodies: Readonly<Record<string, readonly [required: string, optional: string]>> = {
  RequestFields: ["name organization_type website domains purpose contacts reason", ""],
  WebsiteRegistration: [
    "name website owner_person_id environment requested_scopes reason",
    "connector_kind connector_product preview_digest redirect_uris post_logout_redirect_uris backchannel_logout_uri",
  ],
  RequestCreate: ["reason institution_id project_id", ""],
  PersonCreate: ["reason issuer subject", ""],
  Transition: ["expected_version reason", ""],
  EnrollmentCreate: ["reason recipient", ""],
  LaunchCreate: ["reason launch_url", ""],
  OwnerChange: ["reason person_id", "active"],
  Approval: ["reason role", ""],
  LinkCreate: ["reason proof_id", ""],
}

const words = (text: string) => text.split(" ").filter((word) => word !== "").sort()
const posts = operations.filter(({ method }) => method === "POST")
const schemas: Schema = spec.components.schemas

describe("the document of the identity API", () => {
  it("is OpenAPI 3.1.0 of version 0.2.0", () => {
    assert.strictEqual(spec.openapi, "3.1.0")
    assert.strictEqual(spec.info.version, "0.2.0")
    const { description: _, ...scheme } = spec.components.securitySchemes.management
    assert.deepStrictEqual(scheme, { type: "http", scheme: "Bearer" })
  })

  it("has every endpoint of the specification with its key and answer, and the known ones of ours", () => {
    const gets = operations.filter(({ method }) => method === "GET").map(({ template }) => template)
    assert.includeMembers(gets, [...reads])
    assert.sameMembers(
      posts.map(({ template }) => template),
      [...Object.keys(specified), ...extras],
    )
    for (const { parameters, responses, template } of posts) {
      const { key, status } = specified[template] ?? { key: "optional", status: null }
      const header = parameters.find(({ name }) => name === "idempotency-key")
      assert.deepInclude(header, { in: "header", required: key === "required" }, template)
      assert.deepStrictEqual(header!.schema, { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" }, template)
      if (status !== null) assert.property(responses, String(status), template)
      // A dry run that would be accepted is 204.
      const answers = parameters.some(({ name }) => name === "dry_run") ? 2 : 1
      assert.lengthOf(Object.keys(responses).filter((status) => status.startsWith("2")), answers, template)
    }
  })

  it("names each operation's possible failures, with their headers", () => {
    for (const { operationId, parameters, requestBody, responses } of operations) {
      const has = (...statuses: ReadonlyArray<number>) =>
        assert.containsAllKeys(responses, [...statuses.map(String), "default"], operationId)
      if (requestBody !== undefined || parameters.length > 0) {
        has(422)
        assert.deepStrictEqual(responses["422"]!.content, {
          "application/json": { schema: { $ref: "#/components/schemas/HTTPValidationError" } },
        })
      }
      if (parameters.some(({ in: place }) => place === "path")) has(404)
      if (parameters.some(({ name }) => name === "idempotency-key")) has(409)
      assert.isTrue(responses["default"]!.headers!["X-Request-ID"]!.required, operationId)
      for (const [status, { content, headers }] of Object.entries(responses)) {
        if (status === "204") {
          assert.isUndefined(content, operationId)
          continue
        }
        const success = status.startsWith("2")
        if (status === "401") assert.property(headers, "WWW-Authenticate", operationId)
        const lines = success && operationId === "access-grant-reviews.getEvidencePack"
        const json = status === "422" || success ? "application/json" : "application/problem+json"
        const type = lines ? "application/x-ndjson" : json
        assert.deepStrictEqual(Object.keys(content!), [type], `${operationId} ${status}`)
      }
      const common = ["WWW-Authenticate", "Retry-After", "RateLimit", "RateLimit-Policy"]
      assert.containsAllKeys(responses["default"]!.headers, common)
    }
    const { schema } = spec.components.responses.Any.content["application/problem+json"]
    const codes = schema.anyOf.flatMap((one: Schema) => resolved(one, spec)).flatMap((one: Schema) =>
      one.properties.code.enum
    )
    assert.sameMembers(codes, [
      "invalid_credentials",
      "invalid_token",
      "malformed_request",
      "csrf_rejected",
      "console_read_only",
      "auditor_reads_only",
      "not_acceptable",
      "request_timeout",
      "body_too_large",
      "unsupported_media_type",
      "misdirected_request",
      "rate_limited",
      "headers_too_large",
      "internal",
      "dependency_unavailable",
    ])
  })

  it("has the specification's bodies, which accept nothing else", () => {
    for (const [name, [required, optional]] of Object.entries(bodies)) {
      const { additionalProperties, properties, required: needed } = schemas[name]
      assert.deepStrictEqual([...needed].sort(), words(required), name)
      assert.deepStrictEqual(Object.keys(properties).sort(), words(`${required} ${optional}`), name)
      assert.strictEqual(additionalProperties, false, name)
      if ("reason" in properties) assert.deepInclude(properties.reason, { minLength: 8, maxLength: 500 }, name)
    }
    for (const { operationId, requestBody } of posts) {
      const ref: string = requestBody?.content["application/json"]?.schema.$ref ?? ""
      if (ref !== "") assert.isFalse(schemas[ref.split("/").at(-1)!].additionalProperties, operationId)
    }
    assert.deepStrictEqual(schemas.OperationsSummary.required, [
      "pending",
      "failed",
      "failure_diagnostics_available",
      "status",
    ])
    assert.deepStrictEqual(schemas.OperationsSummary.properties.status.enum, ["failed", "pending", "effective"])
    assert.deepStrictEqual(schemas.GrantReceipt.properties.issuer_assignment, { type: "null" })
  })

  it("shows only accepted bodies on its page", () => {
    const all = Object.entries<Record<string, Schema>>(spec.paths).flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method, template }))
    )
    const shown = all.filter(({ requestBody }) => requestBody?.content["application/json"] !== undefined)
    assert.isAbove(shown.length, 40)
    for (const operation of shown) {
      const body = sample(operation.requestBody.content["application/json"].schema, spec)
      assert.isTrue(admits(operation, body), `${operation.operationId} ${JSON.stringify(body)}`)
    }
  })

  it("describes the body of a failing probe", () => {
    const answer = resolved(spec.paths["/ready"].get.responses["503"], spec)
    assert.deepStrictEqual(at(answer, "content", "application/json"), {
      schema: { $ref: "#/components/schemas/NotReady" },
    })
  })

  it("has the specification's rule for the listing of grants", () => {
    const list = operations.find(({ operationId }) => operationId.endsWith(".listLifecycleServiceGrants"))!
    assert.deepInclude(list.parameters.find(({ name }) => name === "limit"), {
      in: "query",
      required: false,
      schema: { type: "string", pattern: "^([1-9][0-9]?|100)$", default: "50" },
    })
    assert.deepInclude(list.parameters.find(({ name }) => name === "after_id"), {
      in: "query",
      required: false,
      schema: { type: "string", format: "uuid" },
    })
  })
})
