/** Rows of the fields that the specification leaves open, in the form of its field tables (FieldRows.ts). */
import { Schema } from "effect"
import { page } from "../../../schemas/api/ServiceGrantsApi.ts"
import { GrantProposal } from "../../../schemas/identity/AccessReview.ts"
import { StartAction } from "../../../schemas/identity/CredentialAction.ts"
import { keyed } from "../../../schemas/identity/IdempotencyKey.ts"
import { ReasonBody } from "../../../schemas/identity/DecisionReason.ts"
import { Contact } from "../../../schemas/identity/RequestBodies.ts"
import { LifecycleServiceApproval, LifecycleServiceProposal } from "../../../schemas/identity/ServiceGrant.ts"
import {
  contact,
  few,
  fill,
  long,
  many,
  noString,
  oneOf,
  orNull,
  reason,
  type Row,
  short,
  text,
  value,
} from "./FieldRows.ts"

const proposal = {
  service_id: "s",
  capabilities: ["events.read"],
  environment: "staging",
  reason,
}

/** The smallest accepted body of each kind. */
export const decidedKinds = {
  Contact: { schema: Contact, minimal: contact },
  Reason: { schema: ReasonBody, minimal: { reason } },
  GrantProposal: { schema: GrantProposal, minimal: { access_id: "", access_version: 1, reason } },
  LifecycleServiceProposal: { schema: LifecycleServiceProposal, minimal: proposal },
  LifecycleServiceApproval: { schema: LifecycleServiceApproval, minimal: { expected_version: 1, reason } },
  StartAction: { schema: StartAction, minimal: { kind: "totp.enroll" } },
  "Grant listing": { schema: Schema.Struct(page), minimal: {} },
  "Idempotency header": { schema: Schema.Struct(keyed), minimal: { "idempotency-key": "k" } },
} as const

const capabilities = ["events.read", "snapshot.read", "cursor.acknowledge", "stream.manage"]
const noInt = { type: "int_type", msg: "Input should be a valid integer" }
const atLeastOne = {
  type: "greater_than_equal",
  msg: "Input should be greater than or equal to 1",
  ctx: { ge: 1 },
}
const keyPattern = {
  type: "string_pattern_mismatch",
  msg: "String should match pattern '^[\\x21-\\x7e]{1,255}$'",
  ctx: { pattern: "^[\\x21-\\x7e]{1,255}$" },
}

const limitPattern = {
  type: "string_pattern_mismatch",
  msg: "String should match pattern '^([1-9][0-9]?|100)$'",
  ctx: { pattern: "^([1-9][0-9]?|100)$" },
}

const noUuid = (error: string) => ({
  type: "uuid_parsing",
  msg: `Input should be a valid UUID, ${error}`,
  ctx: { error },
})

const version = (kind: string, field: string): Row => ({
  kind,
  field,
  required: true,
  good: [1, 2_147_483_647, "7"],
  bad: [{ sent: 0, said: atLeastOne }, { sent: -1, said: atLeastOne }, { sent: null, said: noInt }],
})

const absent = (kind: string, field: string, max: number): Row => ({
  kind,
  field,
  required: false,
  good: [null, fill(1), fill(max)],
  bad: [{ sent: "", said: short(1) }, { sent: fill(max + 1), said: long(max) }, { sent: 5, said: noString }],
})

export const decidedRows: ReadonlyArray<Row> = [
  text("Contact", "name", 1, 200),
  text("Contact", "email", 3, 254),
  {
    kind: "Contact",
    field: "role",
    required: false,
    good: [null, "owner", "technical", "security", "billing"],
    bad: [{ sent: "boss", said: oneOf("'owner', 'technical', 'security' or 'billing'") }],
  },
  orNull("Contact", "phone"),
  text("Reason", "reason", 8, 500),
  text("GrantProposal", "access_id", 0, null),
  version("GrantProposal", "access_version"),
  orNull("GrantProposal", "grant_event_id"),
  text("GrantProposal", "reason", 8, 500),
  text("LifecycleServiceProposal", "service_id", 1, 200),
  absent("LifecycleServiceProposal", "service_issuer", 400),
  {
    kind: "LifecycleServiceProposal",
    field: "capabilities",
    required: true,
    good: [["events.read"], capabilities],
    bad: [
      { sent: [], said: few },
      { sent: [...capabilities, "events.read"], said: many(4) },
      { sent: ["events.read", "events.read"], said: value("expected an array with unique items") },
      { sent: ["events.write"], said: oneOf(listed(capabilities)), at: [0] },
    ],
  },
  {
    kind: "LifecycleServiceProposal",
    field: "environment",
    required: true,
    good: ["staging", "production"],
    bad: [{ sent: "test", said: oneOf("'staging' or 'production'") }],
  },
  {
    kind: "LifecycleServiceProposal",
    field: "expires_at",
    required: false,
    good: [null, "2028-02-29T23:59:59.999999999Z", "2027-12-31t00:00:00z", "2027-01-01T00:00:00+23:59"],
    bad: [
      ...["soon", "", "2027-02-29T00:00:00Z", "2027-04-31T00:00:00Z", "2027-01-00T00:00:00Z", "2027-13-01T00:00:00Z"],
      ...["2027-01-01T24:00:00Z", "2027-01-01T00:00:60Z", "2027-01-01T00:00:00", "2027-01-01T00:00:00+24:00"],
      ...["2027-01-01", " 2027-01-01T00:00:00Z", "1830297600"],
    ].map((sent) => ({ sent, said: { type: "datetime_parsing", msg: "Input should be a valid datetime" } })),
  },
  text("LifecycleServiceProposal", "reason", 8, 500),
  version("LifecycleServiceApproval", "expected_version"),
  text("LifecycleServiceApproval", "reason", 8, 500),
  {
    kind: "StartAction",
    field: "kind",
    required: true,
    good: ["passkey.register", "totp.enroll", "sessions.revoke_others"],
    bad: [{ sent: null, said: oneOf(listed(actions())) }],
  },
  orNull("StartAction", "target_id"),
  absent("StartAction", "label", 64),
  {
    kind: "Grant listing",
    field: "limit",
    required: false,
    good: ["1", "9", "10", "50", "99", "100"],
    bad: ["0", "101", "01", "", "1.0", "-1", " 1"].map((sent) => ({ sent, said: limitPattern })),
  },
  {
    kind: "Grant listing",
    field: "after_id",
    required: false,
    good: ["0199c0de-0000-7000-8000-000000000001", "0199C0DE000070008000000000000001"],
    bad: [
      { sent: "", said: noUuid("invalid length: expected length 32 for simple format, found 0") },
      { sent: "x", said: noUuid("invalid character: found `x` at 1") },
      {
        sent: "0199c0de-0000-7000-8000-00000000000",
        said: noUuid("invalid group length in group 4: expected 12, found 11"),
      },
    ],
  },
  {
    kind: "Idempotency header",
    field: "idempotency-key",
    required: true,
    good: ["k", "~".repeat(255), "!"],
    bad: ["", "k".repeat(256), "two words", "schl\u00fcssel"].map((sent) => ({ sent, said: keyPattern })),
  },
]

function actions(): ReadonlyArray<string> {
  return [
    ...["passkey.register", "passkey.remove", "totp.enroll", "totp.remove", "recovery_codes.generate"],
    ...["authenticator.rename", "session.revoke", "sessions.revoke_others"],
  ]
}

function listed(words: ReadonlyArray<string>): string {
  const quoted = words.map((word) => `'${word}'`)
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`
}
