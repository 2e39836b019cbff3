/**
 * The caller's own account. A membership is effective by the rules of Roles, at the time of the read; a membership of a
 * person who was merged into this one is shown, and is not effective. Only the product can tell whether an Access is
 * effective: it is once the product has acknowledged the Access's current version.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import { Database } from "../platform/database/Database.ts"
import type { AccessToken } from "./AccessTokens.ts"
import { type Found, who } from "./CallerAuthentication.ts"

/** SQL of people's own accounts. */
const accounts = (reads: PgClient.PgClient) => {
  const time = (column: string) =>
    reads.literal(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)

  /** SQL that joins `names.ids`: the ids of the person and of all persons merged into it. */
  const names = reads.literal(`cross join lateral (
    select array(select x.id from people x where x.id = p.id or x.merged_into = p.id) as ids
  ) names`)

  /** SQL of the account of `p`, a row of people with `names`. */
  const bodyAt = (now: Date) =>
    reads`(select row_to_json(v) from (select
        p.id as person_id, p.issuer, p.subject, p.display_name, p.email, p.email_verified, p.status,
        p.revision as version, ${time("p.created_at")} as created_at, ${time("p.updated_at")} as updated_at,
        array_to_json(array(select row_to_json(v) from (
          select i.issuer, i.subject, ${time("i.linked_at")} as linked_at
          from identities i where i.person_id = p.id
          order by i.linked_at, i.issuer, i.subject
        ) v)) as linked_identities,
        array_to_json(array(select row_to_json(v) from (
          select m.institution_id, i.name as institution_name, m.role, m.state,
            (m.person_id = p.id and not p.auditor and i.status = 'active' and not i.removed and m.state = 'active'
              and (m.role <> 'administrator' or m.accepted_at <= ${now})
              and coalesce(m.effective_from <= ${now}, true) and coalesce(m.expires_at > ${now}, true)
            ) is true as effective
          from institution_memberships m left join institutions i on i.id = m.institution_id
          where m.person_id = any(names.ids) and not m.removed
          order by m.institution_id, m.role
        ) v)) as memberships,
        array_to_json(array(select row_to_json(v) from (
          select j.project_id, project.name, case when j.owner then 'owner' else 'user' end as relation,
            case when j.active then 'active' when j.revoked then 'revoked' else 'none' end as access_state,
            case when j.active and j.given then 'effective'
              when j.active or j.revoked and not j.taken then 'unknown' else 'not_effective' end as effective
          from (
            select project_id, bool_or(owner) as owner, bool_or(active) as active, bool_or(revoked) as revoked,
              bool_or(active and acknowledged) as given, bool_and(acknowledged) as taken
            from (
              select project_id, true as owner, false as active, false as revoked, true as acknowledged
              from project_owners
              where person_id = any(names.ids) and active and not removed
              union all
              select project_id, false, state = 'active' and not removed, state = 'revoked' or removed, exists (
                select from access_versions v join lifecycle_told told on told.id = v.event_id
                join lifecycle_consumers c on c.project_id = told.project_id
                  and (c.acknowledged_epoch, c.acknowledged_position) >= (told.epoch, told.position)
                where v.access_id = a.id and v.access_version = a.access_version
              ) from access a
              where person_id = any(names.ids) and state is not null
            ) relation group by project_id
          ) j left join projects project on project.id = j.project_id
          order by j.project_id
        ) v)) as projects,
        p.operator and not p.auditor as operator, p.auditor
      ) v)::text`

  return { names, bodyAt }
}

export class People extends Context.Service<People, {
  /** A person's account as JSON text of `OwnAccount`; a defect where there is no such person. */
  readonly account: (personId: PersonId) => Effect.Effect<string>
  /** The same for the caller of a token, authenticated in the same statement: `found` is for `Callers.seen`. */
  readonly own: (
    token: AccessToken,
  ) => Effect.Effect<{ readonly found: Found | undefined; readonly body: string }>
}>()("bailiwick/services/people/People") {
  static readonly layer = Layer.effect(
    People,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const { bodyAt, names } = accounts(reads)

      const account = Effect.fn("People.account")(function* (personId: PersonId) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* reads<{ body: string }>`
          select ${bodyAt(now)} as body from people p ${names} where p.id = ${personId}`.pipe(Effect.orDie)
        return row!.body
      })

      // A hot read: Effect.fn would take a stack trace at each call.
      const own = Effect.fnUntraced(function* (token: AccessToken) {
        const now = new Date(yield* Clock.currentTimeMillis)
        const [row] = yield* reads<Found & { body: string }>`
          with who as (${who(reads, token)})
          select who.person_id, who.known, who.revoked, who.auditor, ${bodyAt(now)} as body
          from who join people p on p.id = who.person_id ${names}`.pipe(Effect.orDie)
        return { found: row, body: row?.body ?? "" }
      })
      return People.of({ account, own })
    }),
  )
}
