/** A person's own account, as the person sees it (docs/api/identity.md). */
import { Schema } from "effect"
import { InstitutionId, PersonId, ProjectId, SessionId } from "../BrandedIds.ts"
import { Timestamp } from "../Wire.ts"
import { Assurance } from "./Assurance.ts"

export const OwnAccount = Schema.Struct({
  person_id: PersonId,
  /** The person's first identity. */
  issuer: Schema.String,
  subject: Schema.String,
  display_name: Schema.NullOr(Schema.String),
  email: Schema.NullOr(Schema.String),
  email_verified: Schema.Boolean,
  status: Schema.Literals(["active", "suspended", "disabled"]),
  version: Schema.Int,
  created_at: Timestamp,
  updated_at: Timestamp,
  linked_identities: Schema.Array(
    Schema.Struct({ issuer: Schema.String, subject: Schema.String, linked_at: Timestamp }),
  ),
  memberships: Schema.Array(Schema.Struct({
    institution_id: InstitutionId,
    institution_name: Schema.NullOr(Schema.String),
    role: Schema.Literals(["sponsor", "administrator", "member"]),
    state: Schema.Literals(["invited", "active", "suspended", "ended"]),
    effective: Schema.Boolean,
  })),
  projects: Schema.Array(Schema.Struct({
    project_id: ProjectId,
    name: Schema.NullOr(Schema.String),
    relation: Schema.Literals(["owner", "user"]),
    access_state: Schema.Literals(["none", "active", "revoked"]),
    effective: Schema.Literals(["effective", "not_effective", "unknown"]),
  })),
  operator: Schema.Boolean,
  /** Reads decisions and changes nothing; no other role counts meanwhile. */
  auditor: Schema.Boolean,
}).annotate({ identifier: "OwnAccount" })

/** The age and strength of the sign-in in the request's token, and the operations that it suffices for. */
export const Freshness = Schema.Struct({
  authenticated_at: Schema.NullOr(Timestamp),
  age_seconds: Schema.NullOr(Schema.Int),
  acr: Schema.NullOr(Schema.String),
  amr: Schema.Array(Schema.String),
  aal: Assurance,
  server_time: Timestamp,
  token_expires_at: Timestamp,
  fresh: Schema.Boolean,
  fresh_until: Schema.NullOr(Timestamp),
  requirements: Schema.Array(Schema.Struct({
    operation: Schema.String,
    acr_values: Schema.Array(Schema.String),
    max_age_seconds: Schema.Int,
    satisfied: Schema.Boolean,
  })),
}).annotate({ identifier: "Freshness" })
export type Freshness = typeof Freshness.Type

export const SessionList = Schema.Struct({
  items: Schema.Array(Schema.Struct({
    session_id: SessionId,
    current: Schema.Boolean,
    state: Schema.Literals(["active", "expired", "revoked"]),
    issued_at: Timestamp,
    authenticated_at: Schema.NullOr(Timestamp),
    last_seen_at: Timestamp,
    expires_at: Timestamp,
    aal: Assurance,
    authentication_methods: Schema.Array(Schema.Struct({
      /** RFC 8176. */
      method: Schema.String,
      aal: Assurance,
      completed_at: Schema.NullOr(Timestamp),
    })),
    client_id: Schema.String,
    user_agent: Schema.NullOr(Schema.String),
    /** The network that the session was last seen from: /24, or /48 for IPv6. */
    ip_prefix: Schema.NullOr(Schema.String),
    revoked_at: Schema.NullOr(Timestamp),
  })),
  total: Schema.Int,
}).annotate({ identifier: "SessionList" })
