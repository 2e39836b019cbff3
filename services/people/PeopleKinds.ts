/**
 * The directory's kinds for people, institutions and memberships, in the order in which their rows may be locked.
 *
 * A person's identity is the (issuer, subject) of its line; an identity that belongs to another person rejects the
 * line. Changes that products have to know (disabled, enabled, purged, another identity) are appended to each project
 * that hears of the person, in the same transaction.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { PersonId } from "../../schemas/BrandedIds.ts"
import * as Feed from "../../schemas/identity/IdentityDirectory.ts"
import { type DirectoryRow, type Kind, LineRefused } from "../directory/Directory.ts"
import { Database } from "../platform/database/Database.ts"
import { type Identity, PersonEventFanout } from "./PersonEventFanout.ts"
import { standingOf } from "./PersonAudience.ts"

const PersonRow = Schema.Struct({
  id: PersonId,
  removed: Schema.Boolean,
  issuer: Schema.NullOr(Schema.String),
  subject: Schema.NullOr(Schema.String),
  status: Schema.NullOr(Feed.PersonStatus),
  merged_into: Schema.NullOr(PersonId),
})
type PersonRow = typeof PersonRow.Type
const rowOf = Schema.decodeUnknownSync(Schema.NullOr(PersonRow))

/** The identity of a person's row; null for a person who is not known, or removed. */
const identityOf = (row: PersonRow | null): Identity | null =>
  row === null || row.removed || row.issuer === null || row.subject === null
    ? null
    : { issuer: row.issuer, subject: row.subject }

const standing = ({ removed, status }: PersonRow) => standingOf({ removed, status: status ?? "active" })

/** SQL: the membership's state was decided here, and no line has sent the same state yet. */
const decided = "t.state_decided and excluded.state is distinct from t.state"
const keptWith = (column: string) =>
  `case when excluded.removed or (${decided}) then t.${column} else excluded.${column} end`

const isSame = (a: Identity | null, b: Identity | null) => a?.issuer === b?.issuer && a?.subject === b?.subject

/** The effects of a person's lines on its identities and on the products that know of the person. */
const effectsOf = (sql: PgClient.PgClient, fanout: PersonEventFanout["Service"]) => {
  const moveIdentity = Effect.fnUntraced(function* (before: PersonRow | null, after: PersonRow, now: Date) {
    const [was, is] = [identityOf(before), identityOf(after)]
    const holder = after.merged_into ?? after.id
    if (was !== null && !isSame(was, is)) {
      yield* sql`delete from identities
        where issuer = ${was.issuer} and subject = ${was.subject} and person_id = ${holder}`
    }
    // A removed person cannot sign in by linked identities either.
    if (is === null) return yield* sql`delete from identities where person_id = ${after.id}`
    yield* sql`insert into identities (issuer, subject, person_id, linked_at)
      values (${is.issuer}, ${is.subject}, ${holder}, ${now}) on conflict do nothing`
    const [held] = yield* sql<{ person_id: PersonId }>`
      select person_id from identities where issuer = ${is.issuer} and subject = ${is.subject} for update`
    if (held!.person_id !== holder) return yield* new LineRefused({ detail: "the identity is another person's" })
  })

  const tell = Effect.fnUntraced(function* (before: PersonRow, after: PersonRow) {
    const [was, is] = [identityOf(before), identityOf(after)]
    const renamed = was !== null && is !== null && !isSame(was, is) ? { was, is } : null
    const changed = standing(before) !== standing(after)
    if (changed || renamed !== null) yield* fanout.tell({ personId: after.id, standing: changed, renamed })
  })

  const several = Effect.fnUntraced(function* (lines: ReadonlyArray<DirectoryRow>) {
    const read = lines.map(({ fields, id }) => ({ id, ...fields }))
    const rows = yield* sql<{ id: string }>`
      select line.id
      from jsonb_to_recordset(${sql.json(read)}) as line (id text, issuer text, subject text, status text)
      left join people p on p.id = line.id and p.issuer is not null
      where (p.removed, p.issuer, p.subject, p.status) is distinct from
          (false, line.issuer, line.subject, line.status)
        and (p.id is not null or exists (select from access a where a.person_id = line.id))`
    return new Set(rows.map(({ id }) => id))
  })

  const changed = Effect.fnUntraced(function* (beforeJson: unknown, afterJson: unknown, now: Date) {
    const [before, after] = [rowOf(beforeJson), rowOf(afterJson)!]
    yield* moveIdentity(before, after, now)
    if (before !== null && before.issuer !== null) yield* tell(before, after)
  })

  return { several, changed }
}

/** SQL: the person was disabled here, and no line has sent the same yet. */
const disabledHere = "t.status_decided and excluded.status = 'active'"

const personKind = ({ changed, several }: ReturnType<typeof effectsOf>): Kind => ({
  kind: "person",
  table: "people",
  ids: "text",
  fields: Feed.PersonFields,
  columns: {
    issuer: "text",
    subject: "text",
    display_name: "text",
    email: "text",
    email_verified: "boolean",
    operator: "boolean",
    auditor: "boolean",
    status: "text",
  },
  defaults: { email_verified: false, operator: false, auditor: false },
  stamped: ["created_at"],
  set: {
    revision: "t.revision + 1",
    // A person who was disabled here is enabled by a line only after another line has sent `disabled`. A person whom an
    // identity provider holds is not active before it releases the person (PersonHolds); the line is kept until then.
    status: `case when excluded.removed or ${disabledHere} then t.status
      when t.held_under is not null and excluded.status = 'active' then 'suspended' else excluded.status end`,
    held_under: `case when t.held_under is null or excluded.removed or ${disabledHere} then t.held_under
      else excluded.status end`,
    status_decided: "t.status_decided and not excluded.removed and excluded.status = 'active'",
  },
  history: {
    guard: {
      known: {
        issuer: "t.issuer",
        subject: "t.subject",
        operator: "t.operator",
        auditor: "t.auditor",
        status: "t.status",
        held_under: "t.held_under",
        // A line that may not grant anything must not verify an address: a verified address accepts invitations.
        email_verified: "t.email_verified and excluded.email_verified and excluded.email is not distinct from t.email",
      },
      fresh: { operator: false, auditor: false, status: "suspended" },
    },
    several,
    changed,
  },
})

const institutionKind: Kind = {
  kind: "institution",
  table: "institutions",
  ids: "text",
  fields: Feed.InstitutionFields,
  columns: { name: "text", verified_domains: "text[]", status: "text" },
  defaults: { verified_domains: [] },
  stamped: ["created_at"],
  set: { revision: "t.revision + 1" },
  history: { guard: { known: { status: "t.status" }, fresh: { status: "suspended" } } },
}

const membershipKind: Kind = {
  kind: "institution_membership",
  table: "institution_memberships",
  ids: "text",
  fields: Feed.InstitutionMembershipFields,
  columns: {
    institution_id: "text",
    person_id: "text",
    role: "text",
    state: "text",
    accepted_at: "timestamptz",
    effective_from: "timestamptz",
    expires_at: "timestamptz",
  },
  stamped: ["created_at"],
  set: {
    revision: "t.revision + 1",
    state: keptWith("state"),
    state_decided: "t.state_decided and (excluded.removed or excluded.state is distinct from t.state)",
    // The times are part of the decision; a later line with the same state need not know `accepted_at`.
    effective_from: keptWith("effective_from"),
    expires_at: keptWith("expires_at"),
    accepted_at: `case when excluded.accepted_at is null and excluded.state = 'active' and t.state = 'active'
      and t.made_by is not null then t.accepted_at else ${keptWith("accepted_at")} end`,
  },
  history: { guard: "kind", decided: "state" },
}

/** Registers with `Directory.layer`, before projects and Access. */
export const peopleKinds = Effect.gen(function* () {
  const { sql } = yield* Database
  const kinds: ReadonlyArray<Kind> = [
    personKind(effectsOf(sql, yield* PersonEventFanout)),
    institutionKind,
    membershipKind,
  ]
  return kinds
})
