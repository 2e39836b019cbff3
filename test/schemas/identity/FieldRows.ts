/**
 * The rows of the specification's field tables (000, Requests and registration): values at each bound, and values one
 * past it. Lengths count code points, so the fill is an astral character.
 */
import { Approval } from "../../../schemas/identity/PolicyReview.ts"
import { LaunchCreate, OwnerChange, Transition, WebsiteRegistration } from "../../../schemas/identity/Project.ts"
import {
  EnrollmentCreate,
  LinkCreate,
  PersonCreate,
  RequestCreate,
  RequestFields,
} from "../../../schemas/identity/RequestBodies.ts"
import type { Fault } from "../../../schemas/Validation/Fault.ts"

export const reason = "12345678"

export const contact = { name: "n", email: "a@b" }

/** The smallest accepted body of each kind: only the required fields, each as short as allowed. */
export const kinds = {
  RequestFields: {
    schema: RequestFields,
    minimal: {
      name: "ab",
      organization_type: "ab",
      website: "12345678",
      domains: ["a.b"],
      purpose: "123456789012",
      contacts: [contact],
      reason,
    },
  },
  "Website registration": {
    schema: WebsiteRegistration,
    minimal: {
      name: "ab",
      website: "12345678",
      owner_person_id: "p",
      environment: "staging",
      requested_scopes: ["openid"],
      reason,
    },
  },
  RequestCreate: { schema: RequestCreate, minimal: { reason, institution_id: "", project_id: "" } },
  PersonCreate: { schema: PersonCreate, minimal: { reason, issuer: "i", subject: "s" } },
  Transition: { schema: Transition, minimal: { reason, expected_version: 1 } },
  EnrollmentCreate: { schema: EnrollmentCreate, minimal: { reason, recipient: "abc" } },
  LaunchCreate: { schema: LaunchCreate, minimal: { reason, launch_url: "https://a" } },
  OwnerChange: { schema: OwnerChange, minimal: { reason, person_id: "" } },
  Approval: { schema: Approval, minimal: { reason, role: "" } },
  LinkCreate: { schema: LinkCreate, minimal: { reason, proof_id: "" } },
} as const

export const fill = (length: number) => "𝔉".repeat(length)
export const several = (n: number, item: (i: number) => unknown) => Array.from({ length: n }, (_, i) => item(i))

export const short = (n: number) => ({
  type: "string_too_short",
  msg: `String should have at least ${n} character${n === 1 ? "" : "s"}`,
  ctx: { min_length: n },
})
export const long = (n: number) => ({
  type: "string_too_long",
  msg: `String should have at most ${n} characters`,
  ctx: { max_length: n },
})
export const few = {
  type: "too_short",
  msg: "List should have at least 1 item after validation, not 0",
  ctx: { field_type: "List", min_length: 1, actual_length: 0 },
}
export const many = (n: number) => ({
  type: "too_long",
  msg: `List should have at most ${n} items after validation, not ${n + 1}`,
  ctx: { field_type: "List", max_length: n, actual_length: n + 1 },
})
export const noString = { type: "string_type", msg: "Input should be a valid string" }
export const oneOf = (expected: string) => ({
  type: "literal_error",
  msg: `Input should be ${expected}`,
  ctx: { expected },
})
export const value = (message: string) => ({ type: "value_error", msg: `Value error, ${message}`, ctx: { error: {} } })
const noUri = value("an absolute https URI without fragment, user information or wildcard is needed")

interface Refusal {
  readonly sent: unknown
  readonly said: Omit<Fault, "loc" | "input">
  /** The path below the field. */
  readonly at?: ReadonlyArray<string | number>
}

export interface Row {
  readonly kind: string
  readonly field: string
  readonly required: boolean
  /** Accepted values: at the bounds, and others that the table allows. */
  readonly good: ReadonlyArray<unknown>
  readonly bad: ReadonlyArray<Refusal>
}

export const text = (kind: string, field: string, min: number, max: number | null): Row => ({
  kind,
  field,
  required: true,
  good: [fill(min), "a".repeat(min), ...(max === null ? [fill(5_000)] : [fill(max), "a".repeat(max)])],
  bad: [
    ...(min === 0 ? [] : [{ sent: fill(min - 1), said: short(min) }]),
    ...(max === null ? [] : [{ sent: fill(max + 1), said: long(max) }]),
    { sent: 12_345_678, said: noString },
    { sent: null, said: noString },
  ],
})

const uris = (field: string): Row => ({
  kind: "Website registration",
  field,
  required: false,
  good: [[], several(16, (i) => `https://a.example/${i}`), ["http://localhost:8080/cb"], ["HTTPS://A.example"]],
  bad: [
    { sent: several(17, (i) => `https://a.example/${i}`), said: many(16) },
    { sent: ["https://a.example", "http://a.example"], said: noUri, at: [1] },
    { sent: ["https://a.example/#x"], said: noUri, at: [0] },
    { sent: ["https://u@a.example/"], said: noUri, at: [0] },
    { sent: ["https://*.a.example/"], said: noUri, at: [0] },
    { sent: ["https://%2A.a.example/"], said: noUri, at: [0] },
    { sent: ["https://\uff0a.a.example/"], said: noUri, at: [0] },
    { sent: ["/callback"], said: noUri, at: [0] },
    { sent: null, said: { type: "list_type", msg: "Input should be a valid list" } },
  ],
})

export const orNull = (kind: string, field: string): Row => ({
  kind,
  field,
  required: false,
  good: [null, "", fill(3_000)],
  bad: [{ sent: 5, said: noString }],
})

export const website = "Website registration"

export const rows: ReadonlyArray<Row> = [
  text("RequestFields", "name", 2, 200),
  text("RequestFields", "organization_type", 2, 100),
  text("RequestFields", "website", 8, 2048),
  {
    kind: "RequestFields",
    field: "domains",
    required: true,
    good: [["a.b"], several(10, (i) => `d${i}.example`), ["bücher.example"], ["A.Example."], ["a.b", "a.b"]],
    bad: [
      { sent: [], said: few },
      { sent: several(11, (i) => `d${i}.example`), said: many(10) },
      { sent: ["a.b", "not a domain"], said: value("not a domain name"), at: [1] },
      { sent: ["127.0.0.1"], said: value("not a domain name"), at: [0] },
      { sent: ["https://a.b"], said: value("not a domain name"), at: [0] },
      { sent: "a.b", said: { type: "list_type", msg: "Input should be a valid list" } },
    ],
  },
  text("RequestFields", "purpose", 12, 4000),
  {
    kind: "RequestFields",
    field: "contacts",
    required: true,
    good: [
      [contact],
      several(10, () => contact),
      [{ name: fill(200), email: fill(254), role: "security", phone: "+1" }],
      [{ ...contact, role: null, phone: null }],
    ],
    bad: [
      { sent: [], said: few },
      { sent: several(11, () => contact), said: many(10) },
      { sent: [{ ...contact, name: "" }], said: short(1), at: [0, "name"] },
      { sent: [{ ...contact, name: fill(201) }], said: long(200), at: [0, "name"] },
      { sent: [{ ...contact, email: "a@" }], said: short(3), at: [0, "email"] },
      { sent: [{ ...contact, email: fill(255) }], said: long(254), at: [0, "email"] },
      {
        sent: [{ ...contact, role: "boss" }],
        said: oneOf("'owner', 'technical', 'security' or 'billing'"),
        at: [0, "role"],
      },
    ],
  },
  text("RequestFields", "reason", 8, 500),
  text(website, "name", 2, 200),
  text(website, "website", 8, 2048),
  {
    kind: website,
    field: "connector_kind",
    required: false,
    good: ["service_connector", "standard_oidc"],
    bad: [{ sent: "saml", said: oneOf("'service_connector' or 'standard_oidc'") }],
  },
  orNull(website, "connector_product"),
  orNull(website, "preview_digest"),
  text(website, "owner_person_id", 1, null),
  {
    kind: website,
    field: "environment",
    required: true,
    good: ["staging", "production"],
    bad: [{ sent: "test", said: oneOf("'staging' or 'production'") }],
  },
  uris("redirect_uris"),
  uris("post_logout_redirect_uris"),
  {
    kind: website,
    field: "backchannel_logout_uri",
    required: false,
    good: [null, "https://a.example/logout"],
    bad: [{ sent: "ftp://a.example", said: noUri }, { sent: "", said: noUri }],
  },
  {
    kind: website,
    field: "requested_scopes",
    required: true,
    good: [["openid"], ["openid", "profile", "email"], ["email", "email"]],
    bad: [
      { sent: [], said: few },
      { sent: ["openid", "profile", "email", "openid"], said: many(3) },
      { sent: ["openid", "phone"], said: oneOf("'openid', 'profile' or 'email'"), at: [1] },
    ],
  },
  text(website, "reason", 8, 500),
  text("RequestCreate", "reason", 8, 500),
  text("RequestCreate", "institution_id", 0, null),
  text("RequestCreate", "project_id", 0, null),
  text("PersonCreate", "reason", 8, 500),
  text("PersonCreate", "issuer", 1, null),
  text("PersonCreate", "subject", 1, null),
  {
    kind: "Transition",
    field: "expected_version",
    required: true,
    good: [1, 2_147_483_647, "1"],
    bad: [
      {
        sent: 0,
        said: {
          type: "greater_than_equal",
          msg: "Input should be greater than or equal to 1",
          ctx: { ge: 1 },
        },
      },
      { sent: null, said: { type: "int_type", msg: "Input should be a valid integer" } },
      {
        sent: 1.5,
        said: {
          type: "int_from_float",
          msg: "Input should be a valid integer, got a number with a fractional part",
        },
      },
    ],
  },
  text("Transition", "reason", 8, 500),
  text("EnrollmentCreate", "reason", 8, 500),
  text("EnrollmentCreate", "recipient", 3, 254),
  text("LaunchCreate", "reason", 8, 500),
  {
    kind: "LaunchCreate",
    field: "launch_url",
    required: true,
    good: ["https://a", `https://a/${"x".repeat(2038)}`, `https://a/${fill(2038)}`],
    bad: [
      { sent: `https://a/${"x".repeat(2039)}`, said: long(2048) },
      { sent: `https://a/${fill(2039)}`, said: long(2048) },
      { sent: "http://a", said: noUri },
    ],
  },
  text("OwnerChange", "reason", 8, 500),
  text("OwnerChange", "person_id", 0, null),
  {
    kind: "OwnerChange",
    field: "active",
    required: false,
    good: [true, false, "yes", 0],
    bad: [
      {
        sent: "maybe",
        said: { type: "bool_parsing", msg: "Input should be a valid boolean, unable to interpret input" },
      },
      { sent: null, said: { type: "bool_type", msg: "Input should be a valid boolean" } },
    ],
  },
  text("Approval", "reason", 8, 500),
  text("Approval", "role", 0, null),
  text("LinkCreate", "reason", 8, 500),
  text("LinkCreate", "proof_id", 0, null),
]
