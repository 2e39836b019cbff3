/**
 * The rows of others in a growing installation: in every table that a list reads, of other accounts and institutions,
 * written by bulk statements.
 */
import { Effect } from "effect"
import type { Fixture } from "./Servers.ts"

const at = "timestamptz '2025-01-01'"
/** A UUID for each name; and one of version 7, k milliseconds before noon of 20 November 2026. */
const id = (name: string, k = "k") => `md5('${name}' || (${k}))::uuid`
const dated = (name: string) =>
  `(lpad(to_hex(1795176000000 - k), 12, '0') || '7' || substr(md5('${name}' || k), 1, 3) || '8' ||
    substr(md5('${name}' || k), 4, 15))::uuid`
const hash = "sha256(k::text::bytea)"
const account = id("account", "k / 10")
const institution = "'other-' || (k / 1000)"
const project = "'other-project-' || (k / 10)"
const person = "'other-person-' || k"
const sha = `'sha256:' || encode(${hash}, 'hex')`

/** Statements over rows `k`; tables with fewer rows take every tenth or thousandth `k`. */
const statements: ReadonlyArray<string> = [
  `insert into accounts (id, version, removed, updated_at, email, name, plan, platform_admin, status)
    select ${account}, 1, false, ${at}, k || '@other.example', 'Other', 'business', false, 'active' from rows where k % 10 = 0`,
  `insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
    select ${id("key")}, ${account}, 'Key', ${hash}, 'otherkey', array['send'], true, ${at} from rows`,
  `insert into webhooks (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at)
    select ${
    id("webhook")
  }, ${account}, 'https://other.example/', array['email.sent'], true, 1, 'none', '', ${at}, ${at}
    from rows`,
  `insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, response_status,
      endpoint_url, created_at)
    select ${dated("delivery")}, ${id("webhook", "k / 50")}, ${account}, ${
    id("event")
  }, 'email.sent', 'delivered', 1, 1,
      200, 'https://other.example/', ${at} from rows`,
  `insert into delivery_counts (webhook_id, day, status, n, folded)
    select ${id("webhook", "k / 50")}, date '2026-11-20', 'delivered', 50, true from rows where k % 50 = 0`,
  `insert into inboxes (account_id, epoch, version, total, unread)
    select ${account}, 'other', 10, 10, 10 from rows where k % 10 = 0`,
  `insert into notifications (id, account_id, shown, version, category, severity, title, body, href, count, created_at)
    select ${dated("notification")}, ${account}, true, k % 10 + 1, 'webhooks', 'info', 'Title', 'Body', '/', 1, ${at}
    from rows`,
  `insert into transfers (id, version, command_id, domain_id, domain_name, source_user_id, source_org_id, source_label,
      initiated_by, target_user_id, target_email, target_org_id, status, rotate_dkim, forced, initiated_at, expires_at,
      accepted_at, cooloff_until, completed_at, accept_kid, accept_nonce, accept_hash)
    select ${dated("transfer")}, 3, ${id("command")}, ${
    id("domain")
  }, k || '.other.example', ${account}, ${account}, 'Other',
      ${account}, ${
    id("account", "k / 10 + 1")
  }, 'other@other.example', ${account}, 'completed', false, false, ${at}, ${at},
      ${at}, ${at}, ${at}, 'none', '', ${hash} from rows`,
  `insert into people (id, updated_at, created_at, issuer, subject, display_name, email, email_verified, operator, status)
    select ${person}, ${at}, ${at}, 'other', k::text, 'Other', k || '@other.example', true, false, 'active' from rows`,
  `insert into identities (issuer, subject, person_id, linked_at) select 'other', k::text, ${person}, ${at} from rows`,
  `insert into institutions (id, updated_at, name, status)
    select ${institution}, ${at}, 'Other', 'active' from rows where k % 1000 = 0`,
  `insert into institution_memberships (id, updated_at, institution_id, person_id, role, state, accepted_at)
    select ${id("membership")}::text, ${at}, ${institution}, ${person}, 'member', 'active', ${at} from rows`,
  `insert into projects (id, updated_at, institution_id, name, website, environment, connector_kind, state)
    select ${project}, ${at}, ${institution}, 'Other', 'https://' || k || '.other.example', 'production',
      'service_connector', 'launched' from rows where k % 10 = 0`,
  `insert into project_owners (id, updated_at, project_id, person_id)
    select ${id("owner")}::text, ${at}, ${project}, ${person} from rows where k % 10 = 0`,
  `insert into access (id, updated_at, institution_id, project_id, person_id, role, state, access_version)
    select 'other-access-' || k, ${at}, ${institution}, ${project}, ${person}, 'user', 'active', 1 from rows`,
  `insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
      event_id, created_at)
    select 'other-access-' || k, 1, ${institution}, ${project}, ${person}, 'user', 'active', ${sha}, ${
    id("granted")
  }, ${at}
    from rows`,
  `insert into lifecycle_events (id, project_id, epoch, position, digest, prev_digest, body_digest, kind, txn, person_id,
      sub_id, payload, created_at)
    select ${id("granted")}, ${project}, 1, k % 10 + 1, ${sha}, ${sha}, ${sha}, 'access-granted', ${
    id("txn")
  }, ${person},
      '{}', '{}', ${at} from rows`,
  `insert into access_reviews (id, institution_id, project_id, access_id, access_version, access_digest, person_id,
      grant_event_id, grant_event_position, grant_event_digest, state, decision_id, decision_digest, proposed_by,
      proposed_at, sponsor_reason, evidence_digest, evidence_count)
    select ${dated("review")}, ${institution}, ${project}, 'other-access-' || k, 1, ${sha}, ${person}, ${id("granted")},
      k % 10 + 1, ${sha}, 'proposed', ${id("decision")}, ${sha}, ${person}, ${at}, 'as the bench has it', ${sha}, 1
    from rows`,
  `insert into requests (id, kind, state, author, institution_id, project_id, person_id, fields, reason, created_at,
      decided_at)
    select ${
    dated("request")
  }, 'access', 'approved', ${person}, ${institution}, ${project}, ${person}, '{}', 'other', ${at},
      ${at} from rows`,
  `insert into policy_reviews (id, request_id, kind, author, institution_id, project_id, required_roles, state, reason,
      created_at, decided_at)
    select ${dated("policy")}, ${
    dated("request")
  }, 'access', ${person}, ${institution}, ${project}, array['administrator'],
      'applied', 'other', ${at}, ${at} from rows`,
  `insert into sessions (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr)
    select ${id("session")}, 'other', k::text, ${person}, 'other', ${at}, ${at}, ${at}, 'aal1', '{}' from rows`,
]

/** Adds rows `from` … `to` - 1 of each; accounts and projects are a tenth as many, institutions a thousandth. */
export const others = ({ sql }: Fixture, from: number, to: number) =>
  Effect.gen(function* () {
    for (const statement of statements) {
      const [into, select] = [
        statement.slice(0, statement.indexOf("select")),
        statement.slice(statement.indexOf("select")),
      ]
      yield* sql.unsafe(
        `with rows as (select k from generate_series(${from}::bigint, ${to - 1}::bigint) k) ${into} ${select}`,
      )
    }
    yield* sql`vacuum analyze`
  })
