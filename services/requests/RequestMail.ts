/**
 * The mails about requests: an invitation with its link, the notice to the other side of a link,
 * and that a person's authenticators were removed. A mail's template
 * reads the request again when the mail is sent, so nothing is sent about a request that is over. Tokens are derived
 * here and exist in the mail only.
 */
import { Clock, Effect, Redacted } from "effect"
import { Brand } from "../platform/Brand.ts"
import { Database } from "../platform/database/Database.ts"
import { type MailLayout, oneLine, rendered, when } from "../platform/mail/MailLayout.ts"
import type { MailTemplate } from "../platform/mail/Mails.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { objectionWindow, type RequestRow, stateAt } from "./RequestRows.ts"
import { appPath } from "../platform/AppPaths.ts"

export const invitationKind = "enrollment.invitation"
export const linkNoticeKind = "link.requested"
export const resetKind = "authenticators.reset"

/** The kind of the invitation's one-time token. */
export const invitationToken = "enrollment-accept"

interface Row extends Pick<RequestRow, "id" | "kind" | "state" | "expires_at" | "effective_at" | "created_at"> {
  readonly institution: string | null
  readonly token_kid: string | null
  readonly token_nonce: Uint8Array | null
}

/** Templates of all kinds; their links lead to pages under `portalUrl`: the customer's portal, or this program's own. */
export const requestTemplates = (portalUrl: URL) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const tokens = yield* OneTimeTokens
    const brand = yield* Brand
    const base = new URL(portalUrl)
    if (!base.pathname.endsWith("/")) base.pathname += "/"
    const at = (path: string) => new URL(path.slice(1), base).href

    const read = Effect.fnUntraced(function* (id: string) {
      const [row] = yield* sql<Row>`
        select r.id::text as id, r.kind, r.state, r.expires_at, r.effective_at, r.created_at, r.token_kid, r.token_nonce,
          i.name as institution
        from requests r left join institutions i on i.id = r.institution_id where r.id = ${id}::uuid`
      return row ?? null
    })

    const invitation = (row: Row, now: number): MailLayout | null => {
      if (stateAt(row, now) !== "invited") return null
      const input = { kind: invitationToken, id: row.id, kid: row.token_kid!, nonce: row.token_nonce! }
      const institution = oneLine(row.institution ?? "An institution")
      return {
        subject: `${institution} invites you`,
        paragraphs: [
          `${institution} would like you to become one of its members.`,
          `You may accept until ${
            when(row.expires_at!)
          }. Opening the link changes nothing: you are asked there, after ` +
          "signing in with this address.",
        ],
        link: {
          label: "Look at the invitation",
          href: at(appPath("enrollment", { token: Redacted.value(tokens.derive(input)) })),
        },
      }
    }

    const linkNotice = (row: Row, now: number): MailLayout | null =>
      stateAt(row, now) !== "pending_review" ? null : {
        subject: "Somebody asks to link your identity with theirs",
        paragraphs: [
          "A signed-in person showed that they can sign in as you, too, and asks for both identities to become one.",
          `If that was not you, object: nothing takes effect before ${
            when(new Date(now + objectionWindow))
          }, and change how you sign in.`,
        ],
        link: { label: "Look at the request", href: at(appPath("linkRequest", { link_request_id: row.id })) },
      }

    const resetNotice = (row: Row): MailLayout | null =>
      row.state !== "approved" ? null : {
        subject: "Your passkeys, one-time codes and recovery codes were removed",
        paragraphs: [
          `${
            oneLine(row.institution ?? "Your institution")
          } was told that you lost them. Somebody asked for that, and ` +
          "another person agreed. From now on you sign in without them: enroll new ones as soon as you have.",
          "If you lost nothing, tell an administrator at once: somebody else may be about to sign in as you.",
        ],
      }

    const template = (kind: string, letterOf: (row: Row, now: number) => MailLayout | null): MailTemplate => ({
      kind,
      render: Effect.fnUntraced(function* ({ subjectId }) {
        const row = yield* read(subjectId)
        const letter = row && letterOf(row, yield* Clock.currentTimeMillis)
        return letter && rendered(letter, brand)
      }),
    })

    return [
      template(invitationKind, invitation),
      template(linkNoticeKind, linkNotice),
      template(resetKind, resetNotice),
    ]
  })
