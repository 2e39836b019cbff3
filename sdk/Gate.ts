/**
 * The access gate: decides from the product's local state, in one statement, whether a person may use the product. It
 * fails closed: without a snapshot, without open access, or without an entry that grants it, it admits no person.
 */
import { member } from "./Canonical.ts"
import type { Json } from "./Canonical.ts"
import { ask, type Row, type Store, type Work } from "./Store.ts"

/** The person's session, as the product knows it. */
export interface SessionSigns {
  /** The issuer's id of the session (`sid` of the ID token). */
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
 * All entries about a name, about the names that it replaced, and about those that are linked with it. A replaced name
 * does not lead to the name that replaced it, but gives a row that says so.
 */
const entriesAbout = `with recursive names (issuer, subject) as (
    -- the name itself, names that it replaced, names linked with it
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

const entryBy = (
  rows: ReadonlyArray<Row>,
  issuer: string,
  subject: string,
  session: SessionSigns,
): Entry => {
  const entries = rows.map(({ about, id, issuer, subject, value }) => ({
    about,
    id,
    issuer,
    subject,
    value: value === null ? null : JSON.parse(String(value)) as Json,
  }))
  const of = (group: string) => entries.filter(({ about }) => about === group).map(({ value }) => value!)
  const no = (
    because: Exclude<Entry, { readonly may: true }>["because"],
  ): Entry => ({ may: false, because })
  if (!entries.some(({ about }) => about === "open")) return no("closed")
  if (of("project").some((value) => member(value, "status") === "withdrawn")) {
    return no("project_withdrawn")
  }

  // A replaced name admits no person, unless it was taken into use again later.
  const takenIntoUse = entries.filter((entry) =>
    entry.about === "identities" && entry.issuer === issuer &&
    entry.subject === subject &&
    member(entry.value!, "linked") === null
  )
  const since = Math.max(
    -1,
    ...takenIntoUse.map(({ value }) => at(value!, "linked_at")),
  )
  if (of("replaced").some((value) => at(value, "linked_at") >= since)) {
    return no("identity_replaced")
  }
  if (of("people").length > 0) return no("account_disabled")

  // A session that began in the second in which sessions ended may be one of them. Without `sid`, the session may be
  // any of the ended ones.
  const { sessionIssuedAt: began = -1, sid } = session
  const ended = [
    ...of("sessions_floor").map((value) => at(value, "not_before")),
    ...of("sessions").flatMap((value) =>
      sid === undefined ? [at(value, "revoked_at")] : member(value, "session") === sid ? [Infinity] : []
    ),
  ]
  // Written so that NaN counts as ended.
  if (ended.some((end) => !(began > end))) return no("session_ended")

  const access = entries.find(({ about }) => about === "access")
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
  return entryBy(
    yield* ask(entriesAbout, projectId, issuer, subject),
    issuer,
    subject,
    session,
  )
}

/** The gate of one project. Rejects only when the store does; then the person must not be admitted. */
export const gate = <Tx>(store: Store<Tx>, projectId: string) => ({
  /** Whether the person with this issuer and subject may use the product now, and if not, why. */
  mayEnter: (
    issuer: string,
    subject: string,
    session: SessionSigns = {},
  ): Promise<Entry> => store.read(() => entry(projectId, issuer, subject, session)),
})
