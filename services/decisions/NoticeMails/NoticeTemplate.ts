/**
 * The mail of a person's notices. It is rendered when it is sent, from the notices that it was made for. It names no
 * other person and repeats no other person's words: these are shown after a sign-in only. A review that no longer waits for
 * its reader is left out.
 */
import { Clock, Effect } from "effect"
import { PersonId } from "../../../schemas/BrandedIds.ts"
import { appPath } from "../../platform/AppPaths.ts"
import { Brand } from "../../platform/Brand.ts"
import { Database } from "../../platform/database/Database.ts"
import { oneLine, rendered, when } from "../../platform/mail/MailLayout.ts"
import type { MailTemplate } from "../../platform/mail/Mails.ts"
import type { NoticeKind } from "../../requests/PersonNotices.ts"
import type { ReviewKind } from "../../requests/PolicyReviews.ts"
import type { RequestKind } from "../../requests/RequestRows.ts"
import { isSignature, waitingFor } from "./TrueNotices.ts"

export const noticesKind = "person.notices"

interface Row {
  readonly kind: NoticeKind
  readonly subject_id: string
  readonly request_kind: RequestKind | null
  /** Of what waits for a signature. */
  readonly review_kind: ReviewKind | "access_review" | "campaign" | "service_grant" | null
  /** Of a service grant. */
  readonly project_id: string | null
  readonly institution: string | null
  readonly expires_at: Date | null
  /** Of a set of recovery codes. */
  readonly codes_left: number | null
  readonly reason: string | null
  readonly asked_at: Date
}

const asked: Readonly<Record<RequestKind, string>> = {
  organization: "Your request for an institution",
  website: "Your registration of a website",
  access: "Your request for Access",
  enrollment: "Your invitation of a member",
  launch: "Your proposal of a launch",
  link: "Your request to link an identity",
  membership: "Your request for a role",
  authenticator_reset: "Your request to remove a person's authenticators",
  access_revocation: "Your proposal to revoke an Access",
}

const waiting: Readonly<Record<ReviewKind | "access_review" | "campaign" | "service_grant", string>> = {
  organization: "A request for an institution",
  website: "The registration of a website",
  access: "A request for Access",
  enrollment: "An invitation of a member",
  enrollment_claim: "The use of an invitation by another person",
  launch: "The launch of a project",
  link: "A request to link an identity",
  membership: "A request for a role",
  authenticator_reset: "A request to remove a person's authenticators",
  access_revocation: "A proposal to revoke an Access",
  access_review: "A review of an Access",
  campaign: "A campaign over Access",
  service_grant: "A service grant",
}

const became: Readonly<Record<NoticeKind, string>> = {
  "request.approved": "was approved",
  "request.declined": "was declined",
  "request.expired": "expired without a decision",
  "request.revoked": "was revoked",
  "request.superseded": "ended without a decision, since another one replaced it or its project was withdrawn or held",
  "request.accepted": "was accepted",
  "request.launched": "was carried out: the project is launched",
  "request.linked": "took effect",
  "review.approved": "was approved",
  "review.revoked": "was revoked",
  "review.expired": "expired without an approval",
  "grant.approved": "was approved",
  "grant.revoked": "was revoked",
  "codes.few": "are few",
  "codes.none": "are used up",
  "signature.waiting": "waits for your signature",
  "signature.closing": "still waits for your signature",
}

/** Notices that one mail spells out. */
const most = 50
/** Characters of a reason, by which its author knows the request again. */
const longest = 80

const shortened = (text: string) => {
  const characters = [...oneLine(text)]
  return characters.length > longest ? `${characters.slice(0, longest).join("")}…` : characters.join("")
}

const plural = (n: number, one: string, many: string) => n === 1 ? one : `${n} ${many}`

const whatOf = ({ project_id, request_kind }: Row) =>
  request_kind !== null
    ? asked[request_kind]
    : project_id === null
    ? "Your review of an Access"
    : "Your proposal of a service grant"

const answerOf = (row: Row) =>
  `${whatOf(row)} of ${when(row.asked_at)} ${became[row.kind]}` +
  (row.reason === null ? "." : `. You wrote: “${shortened(row.reason)}”`)

const asks = ({ kind, review_kind }: Row) =>
  review_kind === "campaign" ? became[kind].replace("signature", "answers") : became[kind]

const waitingOf = (row: Row) =>
  `${waiting[row.review_kind!]}${row.institution === null ? "" : ` in ${oneLine(row.institution)}`} ${asks(row)}` +
  (row.expires_at === null ? "." : `, until ${when(row.expires_at)}.`)

const isAboutCodes = ({ kind }: Pick<Row, "kind">) => kind === "codes.few" || kind === "codes.none"

const codesOf = ({ codes_left: left }: Row) =>
  (left === 0
    ? "The last of your recovery codes was used"
    : `${left === 1 ? "One of your recovery codes is" : `${left} of your recovery codes are`} left`) +
  ": make new ones before you need them. If you used none, make new ones at once."

const lineOf = (row: Row) => isAboutCodes(row) ? codesOf(row) : isSignature(row) ? waitingOf(row) : answerOf(row)

const subjectOf = (rows: ReadonlyArray<Row>) => {
  const [first] = rows
  if (rows.length === 1 && !isSignature(first!) && !isAboutCodes(first!)) {
    return `${whatOf(first!)} ${became[first!.kind]}`
  }
  const signatures = rows.filter(isSignature).length
  const codes = rows.filter(isAboutCodes).length
  const answers = rows.length - signatures - codes
  const waits = plural(signatures, "A decision waits for you", "decisions wait for you")
  const told = plural(answers, "An answer to what you asked for", "answers to what you asked for")
  return [
    ...(codes === 0 ? [] : ["Your recovery codes are running out"]),
    ...(signatures === 0 ? [] : [waits]),
    ...(answers === 0 ? [] : [told]),
  ].join("; ")
}

/** A review that is told twice in one mail is listed once. */
const once = (
  rows: ReadonlyArray<Row>,
) => [...new Map(rows.map((row) => [isSignature(row) ? row.subject_id : row, row])).values()]

/** The page that the mail leads to, with the words of its button: where one review waits and nothing else is told, its own. */
const pageOf = (rows: ReadonlyArray<Row>): readonly [path: string, label: string] => {
  const [first] = rows
  const project = rows.length === 1 ? first!.project_id : null
  if (project !== null) return [appPath("project", { project_id: project }), "Look at the project"]
  if (!rows.some(isSignature)) return [appPath("requests", {}), "Look at your requests"]
  return rows.length === 1 && first!.review_kind !== "access_review" && first!.review_kind !== "campaign"
    ? [appPath("review", { review_id: first!.subject_id }), "Look at what waits for you"]
    : [appPath("decide", {}), "Look at what waits for you"]
}

/** The template, for `MailTemplates`; `publicUrl` is the program's public origin. */
export const noticeTemplate = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const brand = yield* Brand
    const waits = waitingFor(sql)

    const read = (mailId: string) =>
      sql<Row>`
        select n.kind, n.subject_id::text as subject_id, r.kind as request_kind,
          case when g.id is not null then 'service_grant' when k.id is not null then 'campaign' when p.id is null then 'access_review' else p.kind
            end as review_kind,
          g.project_id, i.name as institution, coalesce(r.reason, v.sponsor_reason, g.reason) as reason,
          coalesce(r.created_at, v.proposed_at, g.proposed_at, k.opened_at) as asked_at, case when t.id is not null then (
            select count(*)::int from recovery_codes c where c.authenticator_id = t.id and c.used_at is null
          ) end as codes_left,
          case when k.id is not null then k.deadline when p.id is null then v.proposed_at + interval '7 days' else q.expires_at end as expires_at
        from person_notices n
        left join requests r on r.id = n.subject_id left join access_reviews v on v.id = n.subject_id
        left join policy_reviews p on p.id = n.subject_id left join requests q on q.id = p.request_id
        left join service_grants g on g.id = n.subject_id left join projects o on o.id = g.project_id
        left join campaigns k on k.id = n.subject_id
        left join authenticators t on t.id = n.subject_id and n.kind in ('codes.few', 'codes.none')
        left join institutions i on i.id = coalesce(p.institution_id, v.institution_id, o.institution_id, k.institution_id)
        where n.mail_id = ${mailId}::uuid
          and (r.id is not null or v.id is not null or p.id is not null or g.id is not null or t.id is not null
            or k.id is not null)
        order by n.created_at, n.subject_id, n.kind desc`

    const template: MailTemplate = {
      kind: noticesKind,
      render: Effect.fnUntraced(function* ({ id, subjectId }) {
        const made = yield* read(id)
        const now = new Date(yield* Clock.currentTimeMillis)
        const asking = made.filter(isSignature).map(({ subject_id }) => subject_id)
        const open = yield* waits(PersonId.make(subjectId), asking, now)
        const rows = once(made.filter((row) => !isSignature(row) || open.has(row.subject_id)))
        if (rows.length === 0) return null
        const left = rows.length - most
        const paragraphs = rows.slice(0, most).map(lineOf)
        const [page, label] = pageOf(rows)
        // People make new codes where they change how they sign in: at the portal, or at the console.
        const link = rows.every(isAboutCodes) ? {} : { link: { label, href: new URL(page, publicUrl).href } }
        return rendered({
          subject: subjectOf(rows),
          paragraphs: left > 0 ? [...paragraphs, `And ${left} more.`] : paragraphs,
          ...link,
        }, brand)
      }),
    }
    return template
  })
