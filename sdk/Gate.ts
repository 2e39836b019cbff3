/**
 * Whether somebody may come in, answered from what the product was told, in one statement. Fail closed: nobody gets in
 * before the first snapshot, while access is closed, or where what is known does not say that they may.
 */
import { member } from "./Canonical.ts"
import type { Json } from "./Canonical.ts"
import { ask, type Row, type Store, type Work } from "./Store.ts"

/** What the product knows of the session by which somebody comes. */
export interface SessionSigns {
  /** The issuer's name of it (`sid` of the ID token). */
  readonly sid?: string | undefined
  /** When the person signed in (`auth_time`, else `iat`), in seconds since the epoch. */
  readonly sessionIssuedAt?: number | undefined
}

export type Entry =
  | {
    readonly may: true
    readonly accessId: string
    readonly role: string | null
  }
  | {
    readonly may: false
    readonly because:
      | "closed"
      | "project_withdrawn"
      | "identity_replaced"
      | "account_disabled"
      | "session_ended"
      | "no_access"
  }

/**
 * Everything that is known of a name, of the names that it took the place of, and of those that it is linked with. A
 * replaced name does not lead on to the one that took its place, but that it was replaced is told.
 */
const known = `with recursive names (issuer, subject) as (
    select cast($2 as text), cast($3 as text)
    union
    select case when f.issuer = n.issuer and f.subject = n.subject then f.other_issuer else f.issuer end,
      case when f.issuer = n.issuer and f.subject = n.subject then f.other_subject else f.subject end
    from names n join bailiwick_facts f on f.project_id = $1 and f.about = 'identities' and f.other_issuer is not null
      and (f.issuer = n.issuer and f.subject = n.subject
        or f.linked = 1 and f.other_issuer = n.issuer and f.other_subject = n.subject)
  )
  select 'open' as about, null as id, null as issuer, null as subject, null as value from bailiwick_consumer
  where project_id = $1 and is_open = 1
  union all
  select 'project', null, null, null, value from bailiwick_facts where project_id = $1 and about = 'project'
  union all
  select f.about, f.id, f.issuer, f.subject, f.value from names n
  join bailiwick_facts f on f.project_id = $1 and f.issuer = n.issuer and f.subject = n.subject
  union all
  select 'replaced', null, null, null, value from bailiwick_facts
  where project_id = $1 and about = 'identities' and linked = 0 and other_issuer = $2 and other_subject = $3`

const at = (value: Json, name: string): number => {
  const seconds = member(value, name)
  return typeof seconds === "number" ? seconds : Infinity
}

const judged = (
  rows: ReadonlyArray<Row>,
  issuer: string,
  subject: string,
  session: SessionSigns,
): Entry => {
  const facts = rows.map(({ about, id, issuer, subject, value }) => ({
    ...{ about, id, issuer, subject },
    value: value === null ? null : JSON.parse(String(value)) as Json,
  }))
  const of = (group: string) => facts.filter(({ about }) => about === group).map(({ value }) => value!)
  const no = (
    because: Exclude<Entry, { readonly may: true }>["because"],
  ): Entry => ({ may: false, because })
  if (!facts.some(({ about }) => about === "open")) return no("closed")
  if (of("project").some((value) => member(value, "status") === "withdrawn")) {
    return no("project_withdrawn")
  }

  // A name that another took the place of speaks for nobody, unless it came back later.
  const own = facts.filter((fact) =>
    fact.about === "identities" && fact.issuer === issuer &&
    fact.subject === subject &&
    member(fact.value!, "linked") === null
  )
  const since = Math.max(
    -1,
    ...own.map(({ value }) => at(value!, "linked_at")),
  )
  if (of("replaced").some((value) => at(value, "linked_at") >= since)) {
    return no("identity_replaced")
  }
  if (of("people").length > 0) return no("account_disabled")

  // What came in the second in which sessions ended may have come before it. Whoever cannot name the session may have
  // come by any that ended.
  const { sessionIssuedAt: began = -1, sid } = session
  const ended = [
    ...of("sessions_floor").map((value) => at(value, "not_before")),
    ...of("sessions").flatMap((value) =>
      sid === undefined ? [at(value, "revoked_at")] : member(value, "session") === sid ? [Infinity] : []
    ),
  ]
  // What is no number is no time after it.
  if (ended.some((end) => !(began > end))) return no("session_ended")

  const access = facts.find(({ about }) => about === "access")
  if (access === undefined) return no("no_access")
  const role = member(access.value!, "role")
  return {
    may: true,
    accessId: String(access.id),
    role: typeof role === "string" ? role : null,
  }
}

function* entry(
  projectId: string,
  issuer: string,
  subject: string,
  session: SessionSigns,
): Work<Entry> {
  return judged(
    yield* ask(known, projectId, issuer, subject),
    issuer,
    subject,
    session,
  )
}

/** Answers for one project. Rejects only where the store does; whoever cannot be judged must not come in. */
export const gate = <Tx>(store: Store<Tx>, projectId: string) => ({
  /** May the person whom this issuer calls by this subject use the product now? */
  mayEnter: (
    issuer: string,
    subject: string,
    session: SessionSigns = {},
  ): Promise<Entry> => store.read(() => entry(projectId, issuer, subject, session)),
})
