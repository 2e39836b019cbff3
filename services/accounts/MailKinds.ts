/**
 * The mail platform's seven kinds of the directory, in the order in which their rows may be locked.
 *
 * The feed cannot undo decisions that were made here: while a domain's owner is `owner_held`, the feed's owner fields
 * for it are ignored until they name that owner; a credential that was revoked here stays revoked; and a credential
 * whose account is not its domain's owner is revoked as soon as both are known, in either order. The revocation is
 * published for the mail platform.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { type AccountId, DomainId, type SmtpCredentialId } from "../../schemas/BrandedIds.ts"
import type { SmtpCredentialRevoked } from "../../schemas/bus/Decisions.ts"
import { Subject } from "../../schemas/bus/Subject.ts"
import * as Feed from "../../schemas/mail/MailDirectory.ts"
import type { DirectoryRow, Kind } from "../directory/Directory.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { lock } from "../platform/database/AdvisoryLocks.ts"
import { Database } from "../platform/database/Database.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"

/** The topic of the wake-up signal that new or changed accounts send: events may have waited for them. */
export const accountsTopic = "accounts"

const echoed = "excluded.account_id is not distinct from t.account_id"
const ownerOf = (column: string) =>
  `case when excluded.removed or (t.owner_held and not ${echoed}) then t.${column} else excluded.${column} end`

/** Keeps SMTP credentials to the accounts that own their domains. */
const credentials = (sql: PgClient.PgClient, outbox: Outbox["Service"]) => {
  // Two transactions that bring a domain and its credential at the same time run one after the other, so that the second
  // sees the first one's rows.
  const compareInTurn = lock(sql, "smtpOwnership")

  // A transfer that moves a domain revokes the credentials that it loaded, fenced by the domain's revision. Raising the
  // revision makes a transfer that has not seen the credential begin anew.
  const raiseDomains = (domainIds: ReadonlyArray<DomainId>) =>
    sql`
      update domains d set revision = d.revision + 1
      from (select id from domains where id = any(${domainIds}::uuid[]) order by id for update) held
      where d.id = held.id`

  const lockCredentials = Effect.fnUntraced(function* (lines: ReadonlyArray<DirectoryRow>) {
    const known = yield* sql<{ domain_id: DomainId }>`
      select distinct domain_id::text from smtp_credentials
      where id = any(${lines.map(({ id }) => id)}::uuid[]) and domain_id is not null`
    const named = lines.flatMap(({ fields }) => fields === null ? [] : [DomainId.make(String(fields["domain_id"]))])
    const domainIds = [...new Set([...known.map(({ domain_id }) => domain_id), ...named])]
    if (domainIds.length > 0) yield* Effect.andThen(raiseDomains(domainIds), compareInTurn)
  })

  const revokeForeign = (column: "id" | "domain_id") =>
    Effect.fnUntraced(function* (ids: ReadonlyArray<string>, now: Date) {
      if (column === "domain_id" && ids.length > 0) {
        yield* sql`select from domains where id = any(${ids}::uuid[]) order by id for share`
        yield* compareInTurn
      }
      const revoked = yield* sql<{ id: SmtpCredentialId; domain_id: DomainId; account_id: AccountId }>`
        update smtp_credentials c set locally_revoked_at = ${now}
        from domains d
        where d.id = c.domain_id and d.account_id <> c.account_id and not d.removed and not c.removed
          and c.revoked_at is null and c.locally_revoked_at is null
          and c.${sql(column)} = any(${ids}::uuid[])
        returning c.id::text as id, c.domain_id::text as domain_id, c.account_id::text as account_id`
      yield* outbox.add(...revoked.map((credential) => ({
        stream: "DIRECTORY" as const,
        subject: `directory.v1.smtp_credential.${Subject.token(credential.id)}`,
        payload: JSON.stringify(
          { kind: "smtp_credential", ...credential, revoked_at: now.toISOString() } satisfies SmtpCredentialRevoked,
        ),
      })))
    })

  return { lockCredentials, revokeForeign }
}
type Credentials = ReturnType<typeof credentials>

const accountKind = (sql: PgClient.PgClient, wakeUps: WakeUps["Service"]): Kind => ({
  kind: "account",
  table: "accounts",
  ids: "uuid",
  fields: Feed.AccountFields,
  columns: {
    email: "text",
    name: "text",
    plan: "text",
    domain_limit: "integer",
    platform_admin: "boolean",
    status: "text",
    slack_webhook_url: "text",
  },
  after: () => sql.afterCommit(wakeUps.notify(accountsTopic)),
})

const workspaceKind: Kind = {
  kind: "workspace",
  table: "workspaces",
  ids: "uuid",
  fields: Feed.WorkspaceFields,
  columns: { name: "text", created_at: "timestamptz" },
}

const membershipKind: Kind = {
  kind: "workspace_membership",
  table: "workspace_memberships",
  ids: "uuid",
  fields: Feed.WorkspaceMembershipFields,
  columns: { workspace_id: "uuid", account_id: "uuid", role: "text" },
}

const domainKind = ({ revokeForeign }: Credentials): Kind => ({
  kind: "domain",
  table: "domains",
  ids: "uuid",
  fields: Feed.DomainFields,
  columns: {
    name: "text",
    account_id: "uuid",
    workspace_id: "uuid",
    verified_at: "timestamptz",
    dkim_selector: "text",
  },
  set: {
    account_id: ownerOf("account_id"),
    workspace_id: ownerOf("workspace_id"),
    owner_held: `t.owner_held and (excluded.removed or not ${echoed})`,
    revision: "t.revision + 1",
  },
  // Each version has an effect: an echo of the decided owner, or an owner that ends a transfer, and the next version
  // may follow in the same batch.
  traced: true,
  after: revokeForeign("domain_id"),
})

const broadcastKind: Kind = {
  kind: "broadcast",
  table: "broadcasts",
  ids: "uuid",
  fields: Feed.BroadcastFields,
  columns: { domain_id: "uuid", name: "text", status: "text", scheduled_at: "timestamptz" },
}

const scheduledEmailKind: Kind = {
  kind: "scheduled_email",
  table: "scheduled_emails",
  ids: "uuid",
  fields: Feed.ScheduledEmailFields,
  columns: { domain_id: "uuid", subject: "text", scheduled_at: "timestamptz", status: "text" },
}

const credentialKind = ({ lockCredentials, revokeForeign }: Credentials): Kind => ({
  kind: "smtp_credential",
  table: "smtp_credentials",
  ids: "uuid",
  fields: Feed.SmtpCredentialFields,
  columns: { domain_id: "uuid", account_id: "uuid", username: "text", revoked_at: "timestamptz" },
  lock: lockCredentials,
  after: revokeForeign("id"),
})

/** The kinds, for `Directory.layer`. */
export const mailKinds = Effect.gen(function* () {
  const { sql } = yield* Database
  const ofCredentials = credentials(sql, yield* Outbox)
  const kinds: ReadonlyArray<Kind> = [
    accountKind(sql, yield* WakeUps),
    workspaceKind,
    membershipKind,
    domainKind(ofCredentials),
    broadcastKind,
    scheduledEmailKind,
    credentialKind(ofCredentials),
  ]
  return kinds
})
