/** The web console's knowledge of its visitor and of this installation: enough to show the right navigation. */
import { Schema } from "effect"
import { Plan } from "../mail/MailAccount.ts"
import { Id, Timestamp } from "../Wire.ts"
import { Assurance } from "./Assurance.ts"

export const ConsoleSession = Schema.Struct({
  /** Null: no person is signed in. `id` is a name of the session, and opens nothing. */
  session: Schema.NullOr(Schema.Struct({
    id: Id,
    issuer: Schema.String,
    authenticated_at: Schema.NullOr(Timestamp),
    /** When the session ends without a further request. */
    idle_ends_at: Timestamp,
    ends_at: Timestamp,
  })),
  person: Schema.NullOr(Schema.Struct({
    person_id: Schema.String,
    display_name: Schema.NullOr(Schema.String),
    email: Schema.NullOr(Schema.String),
    aal: Assurance,
  })),
  account: Schema.NullOr(Schema.Struct({
    id: Id,
    email: Schema.String,
    name: Schema.String,
    plan: Plan,
    platform_admin: Schema.Boolean,
  })),
  operator: Schema.Boolean,
  /** The person reads decisions, and `mode` is `read`. */
  auditor: Schema.Boolean,
  /** The person's effective memberships. */
  institutions: Schema.Array(Schema.Struct({
    institution_id: Schema.String,
    name: Schema.NullOr(Schema.String),
    roles: Schema.Array(Schema.Literals(["sponsor", "administrator", "member"])),
  })),
  /** Projects that the person owns. */
  projects: Schema.Array(Schema.Struct({ project_id: Schema.String, name: Schema.NullOr(Schema.String) })),
  /** Where a visitor may sign in. */
  issuers: Schema.Array(Schema.Struct({ issuer: Schema.String, name: Schema.String, sign_in_url: Schema.String })),
  /** `read`: the console, or this visitor, may change nothing. */
  mode: Schema.Literals(["read", "on"]),
  /** The installation's own name, and its logo (`BRAND_NAME`, `BRAND_LOGO`). */
  brand: Schema.Struct({ name: Schema.String, logo_url: Schema.NullOr(Schema.String) }),
  features: Schema.Struct({
    transfers: Schema.Boolean,
    /** Passkeys can be registered by a page of this domain or of one below it. */
    passkey_domain: Schema.String,
  }),
  installation: Schema.Struct({ state: Schema.Literals(["open", "held"]) }),
  version: Schema.String,
}).annotate({ identifier: "ConsoleSession" })
export type ConsoleSession = typeof ConsoleSession.Type
