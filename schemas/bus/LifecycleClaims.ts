/**
 * The claims of lifecycle messages by event kind (docs/lifecycle.md): security event tokens of RFC 8417 on
 * `lifecycle.v1.<project_id>.<kind>`, with subjects of RFC 9493.
 */
import { Schema } from "effect"
import { Capability } from "../identity/ServiceGrant.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../identity/LifecycleEventKinds.ts"
import { Environment } from "../identity/IdentityDirectory.ts"
import { Id } from "../Wire.ts"

const { optionalKey: maybe, String: text } = Schema

const person = Schema.Struct({ format: Schema.Literal("iss_sub"), iss: text, sub: text })
  .annotate({ identifier: "PersonSubject" })
const opaque = Schema.Struct({ format: Schema.Literal("opaque"), id: text }).annotate({ identifier: "OpaqueSubject" })
const complex = <Fields extends Schema.Struct.Fields>(members: Fields) =>
  Schema.Struct({ format: Schema.Literal("complex"), ...members })

const ofAccess = complex({ user: person, application: opaque, tenant: opaque })
const ofReview = complex({ user: maybe(person), application: opaque, tenant: opaque })
const ofProject = complex({ application: opaque, tenant: opaque })

const access = Schema.Struct({
  access_id: text,
  version: Schema.Int,
  previous_version: maybe(Schema.Int),
  role: text,
}).annotate({ identifier: "LifecycleAccess" })

const project = maybe(Schema.Struct({ version: Schema.Int, environment: maybe(Environment) }))

const grant = Schema.Struct({
  grant_id: text,
  service_id: text,
  service_issuer: text,
  capabilities: Schema.Array(Capability),
  environment: Environment,
  expires_at: Schema.NullOr(text),
}).annotate({ identifier: "LifecycleServiceGrant" })

const review = Schema.Struct({ review_id: text, access_id: text, version: Schema.Int })
  .annotate({ identifier: "LifecycleReview" })

interface Kind {
  readonly subject: Schema.Top
  /** Members of the payload beside the common ones. */
  readonly own: Schema.Struct.Fields
}

const kinds: Readonly<Record<LifecycleEventKind, Kind>> = {
  "access-granted": { subject: ofAccess, own: { access } },
  "access-revoked": { subject: ofAccess, own: { access } },
  "token-claims-change": {
    subject: complex({ user: person, tenant: opaque }),
    own: { access, claims: Schema.Struct({ role: text }) },
  },
  "account-disabled": { subject: person, own: {} },
  "account-enabled": { subject: person, own: {} },
  "account-purged": { subject: person, own: {} },
  "session-revoked": { subject: Schema.Union([person, complex({ user: person, session: opaque })]), own: {} },
  "credential-change": {
    subject: person,
    own: { credential_type: text, change_type: text, fido2_aaguid: maybe(text) },
  },
  "credential-compromise": { subject: person, own: { credential_type: text } },
  "recovery-information-changed": { subject: person, own: {} },
  "assurance-level-change": { subject: person, own: { namespace: text, current_level: text } },
  "identity-linked": { subject: person, own: { previous: maybe(person), linked: maybe(person) } },
  "project-registered": { subject: ofProject, own: { project } },
  "project-launched": { subject: ofProject, own: { project } },
  "project-withdrawn": { subject: ofProject, own: { project } },
  "project-owner-changed": {
    subject: ofProject,
    own: { owner: Schema.Struct({ person_id: text, active: Schema.Boolean, user: person }) },
  },
  "service-grant-approved": { subject: ofProject, own: { grant } },
  "service-grant-revoked": { subject: ofProject, own: { grant } },
  "access-review-approved": { subject: ofReview, own: { review } },
  "access-review-revoked": { subject: ofReview, own: { review } },
  "key-transition": {
    subject: ofProject,
    own: { next: maybe(Schema.Array(text)), not_before: maybe(Schema.Int), compromised: maybe(text) },
  },
}

const digest = Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/))

const chained = Schema.Struct({
  epoch: Schema.Int,
  position: Schema.Int,
  cursor: text,
  digest,
  prev_digest: digest,
}).annotate({ identifier: "LifecyclePosition" })

/** The claims of a message of this kind. */
export const claimsOf = (kind: LifecycleEventKind) => {
  const { own, subject } = kinds[kind]
  const event = Schema.Struct({
    event_timestamp: Schema.Int,
    initiating_entity: Schema.Literals(["admin", "user", "policy", "system"]),
    reason_admin: maybe(Schema.Struct({ en: text })),
    ...own,
    lifecycle: chained,
  })
  return Schema.Struct({
    iss: text,
    jti: Id,
    iat: Schema.Int,
    aud: text,
    txn: Id,
    sub_id: subject,
    events: Schema.Struct({ [lifecycleEventKinds[kind].uri]: event }),
  })
}
