/**
 * The mail of a person's notices. It is rendered when it is sent, from the notices that it was made for, and repeats
 * nothing but what its reader wrote: names and reasons of other people stay behind the sign-in.
 */
import { Effect } from "effect"
import { appPath } from "../../platform/AppPaths.ts"
import { Brand } from "../../platform/Brand.ts"
import { Database } from "../../platform/database/Database.ts"
import { oneLine, rendered, when } from "../../platform/mail/MailLayout.ts"
import type { MailTemplate } from "../../platform/mail/Mails.ts"
import type { NoticeKind } from "../../requests/PersonNotices.ts"
import type { RequestKind } from "../../requests/RequestRows.ts"

export const noticesKind = "person.notices"

interface Row {
  readonly kind: NoticeKind
  readonly request_kind: RequestKind | null
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
}

/** Notices that one mail spells out. */
const most = 50
/** Characters of a reason, by which its author knows the request again. */
const longest = 80

const shortened = (text: string) => {
  const characters = [...oneLine(text)]
  return characters.length > longest ? `${characters.slice(0, longest).join("")}…` : characters.join("")
}

const whatOf = ({ request_kind }: Row) => request_kind === null ? "Your review of an Access" : asked[request_kind]

const lineOf = (row: Row) =>
  `${whatOf(row)} of ${when(row.asked_at)} ${became[row.kind]}` +
  (row.reason === null ? "." : `. You wrote: “${shortened(row.reason)}”`)

const subjectOf = (rows: ReadonlyArray<Row>) =>
  rows.length === 1 ? `${whatOf(rows[0]!)} ${became[rows[0]!.kind]}` : `${rows.length} answers to what you asked for`

/** The template, for `MailTemplates`; `publicUrl` is the program's public origin. */
export const noticeTemplate = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const brand = yield* Brand
    const template: MailTemplate = {
      kind: noticesKind,
      render: Effect.fnUntraced(function* ({ id }) {
        const rows = yield* sql<Row>`
          select n.kind, r.kind as request_kind, coalesce(r.reason, v.sponsor_reason) as reason,
            coalesce(r.created_at, v.proposed_at) as asked_at
          from person_notices n
          left join requests r on r.id = n.subject_id left join access_reviews v on v.id = n.subject_id
          where n.mail_id = ${id}::uuid and (r.id is not null or v.id is not null)
          order by n.created_at, n.subject_id, n.kind`
        if (rows.length === 0) return null
        const left = rows.length - most
        const paragraphs = rows.slice(0, most).map(lineOf)
        return rendered({
          subject: subjectOf(rows),
          paragraphs: left > 0 ? [...paragraphs, `And ${left} more.`] : paragraphs,
          link: { label: "Look at your requests", href: new URL(appPath("requests", {}), publicUrl).href },
        }, brand)
      }),
    }
    return template
  })
