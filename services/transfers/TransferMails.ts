/**
 * The texts of the mails about transfers. A mail reads its transfer again when it is sent: an invitation to an offer
 * that was answered, or a stop mail after the safety window, is not sent. Tokens are derived here and exist only in the
 * mail.
 */
import { Clock, Effect, Redacted } from "effect"
import type { TransferId } from "../../schemas/BrandedIds.ts"
import { Brand } from "../platform/Brand.ts"
import { Database } from "../platform/database/Database.ts"
import { type MailLayout, oneLine, rendered, when } from "../platform/mail/MailLayout.ts"
import { type DkimAlgorithm, recordOf } from "./DkimKeys.ts"
import type { MailTemplate } from "../platform/mail/Mails.ts"
import { OneTimeTokens } from "../platform/security/OneTimeTokens.ts"
import { appPath } from "../platform/AppPaths.ts"

interface Row {
  readonly id: TransferId
  readonly domain_name: string
  readonly source_label: string
  readonly target_email: string
  readonly note: string | null
  readonly status: string
  readonly forced: boolean
  readonly expires_at: Date
  readonly cooloff_until: Date | null
  readonly accept_kid: string | null
  readonly accept_nonce: Uint8Array | null
  readonly stop_kid: string | null
  readonly stop_nonce: Uint8Array | null
  /** The selector of the transfer's DKIM key, or null. */
  readonly selector: string | null
  readonly algorithm: DkimAlgorithm
  readonly public_key: string
}

type To = "owner" | "initiator" | "recipient"

/** A mail's arguments, from Addressees.ts. */
interface Args {
  readonly event: string
  /** Set if SMTP credentials were revoked: the reader's own; in the recipient's mail, those of another account. */
  readonly revoked?: string | null
  /** Set if a forced transfer ended a live transfer of the reader. */
  readonly ended?: string | null
}

const mine = (to: To) => to === "recipient"

const recordLines = ({ algorithm, domain_name, public_key, selector }: Row): ReadonlyArray<string> => {
  if (selector === null) return []
  const { name, value } = recordOf(domain_name, { algorithm, selector, publicKey: public_key })
  return [`Name: ${name}`, `Type: TXT`, `Value: ${value}`]
}

/** The mails without a link, by kind. */
const endings: Readonly<Record<string, (row: Row, to: To, args: Args) => MailLayout>> = {
  "transfer.offered": ({ domain_name, expires_at }) => ({
    subject: `${domain_name} was offered to another account`,
    paragraphs: [
      `An administrator of your workspace offered your domain ${domain_name} to another account.`,
      `Nothing has changed yet. The offer can be accepted until ${
        when(expires_at)
      }; you may cancel it until then, and ` +
      "stop the transfer for a while after it is accepted.",
    ],
  }),
  "transfer.declined": ({ domain_name }) => ({
    subject: `The transfer of ${domain_name} was declined`,
    paragraphs: [`The recipient declined ${domain_name}. It stays where it is.`],
  }),
  "transfer.cancelled": ({ domain_name }, to, { event }) => ({
    subject: `The transfer of ${domain_name} ${
      event === "overtaken" || event === "superseded" ? "has ended" : "was cancelled"
    }`,
    paragraphs: [
      event === "overtaken"
        ? `The offer of ${domain_name} ended because the domain changed meanwhile.`
        : event === "superseded"
        ? `The offer of ${domain_name} ended: an administrator of the platform moved the domain.`
        : mine(to)
        ? `The offer of ${domain_name} was withdrawn. The link that you were sent no longer works.`
        : `The offer of ${domain_name} was withdrawn.`,
    ],
  }),
  "transfer.reversed": ({ domain_name }, _to, { event }) => ({
    subject: `The transfer of ${domain_name} ${
      event === "stopped" ? "was stopped" : event === "undeliverable" ? "was reversed" : "has ended"
    }`,
    paragraphs: [
      event === "stopped"
        ? `The transfer of ${domain_name} was stopped within its safety window. Its owner is the same as before.`
        : event === "undeliverable"
        ? `The transfer of ${domain_name} was reversed: the recipient can no longer take the domain. It stays where it is.`
        : event === "superseded"
        ? `The transfer of ${domain_name} ended: an administrator of the platform moved the domain.`
        : `The transfer of ${domain_name} ended because the domain changed meanwhile.`,
    ],
  }),
  "transfer.expired": ({ domain_name }, to) => ({
    subject: `The transfer of ${domain_name} has expired`,
    paragraphs: [
      mine(to)
        ? `You did not accept ${domain_name} in time. The link that you were sent no longer works.`
        : `${domain_name} was not accepted in time. It stays where it is.`,
    ],
  }),
  "transfer.completed": (row, to, { ended, revoked }) => ({
    subject: mine(to) ? `${row.domain_name} is yours` : `${row.domain_name} was transferred`,
    paragraphs: [
      row.forced
        ? `An administrator of the platform moved ${row.domain_name} to ${
          mine(to) ? "your account" : "another account"
        }.`
        : `The transfer of ${row.domain_name} is complete.`,
      ...(ended === undefined ? [] : ["The transfer that was under way has ended."]),
      ...(mine(to)
        ? [
          `${revoked === undefined ? "" : "SMTP credentials that other accounts had for it were revoked. "}` +
          "You need SMTP credentials of your own for it before you send.",
        ]
        : revoked === undefined
        ? []
        : ["SMTP credentials of your account for it were revoked."]),
      ...(mine(to) && row.selector !== null
        ? [
          "Its mail is signed with a new DKIM key. Unless you did so already, publish this record in the domain's DNS:",
          ...recordLines(row),
        ]
        : []),
    ],
  }),
}

/** The kinds of mail that transfers send. */
export const transferMailKinds = ["transfer.invitation", "transfer.stop", "transfer.key", ...Object.keys(endings)]

/** The templates of all kinds; links begin with `publicUrl`. */
export const transferTemplates = (publicUrl: URL) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const tokens = yield* OneTimeTokens
    const brand = yield* Brand

    const link = (does: "accept" | "stop", { id }: Row, kid: string, nonce: Uint8Array) => {
      const token = Redacted.value(tokens.derive({ kind: `transfer-${does}`, id, kid, nonce }))
      return new URL(appPath(does === "accept" ? "acceptTransfer" : "stopTransfer", { token }), publicUrl).href
    }

    const invitation = (row: Row, now: number): MailLayout | null =>
      row.status !== "pending" || row.expires_at.getTime() <= now ? null : {
        subject: `${oneLine(row.source_label)} offers you the domain ${row.domain_name}`,
        paragraphs: [
          `${oneLine(row.source_label)} would like to hand the domain ${row.domain_name} over to you.`,
          `You may accept until ${when(row.expires_at)}. Opening the link changes nothing: you are asked there.`,
        ],
        quote: row.note,
        link: { label: "Look at the offer", href: link("accept", row, row.accept_kid!, row.accept_nonce!) },
      }

    const stop = (row: Row, now: number, event: string): MailLayout | null =>
      row.status !== "accepted" || row.cooloff_until!.getTime() <= now ? null : {
        subject: `${row.domain_name} will be transferred: stop it here`,
        paragraphs: [
          event === "extended"
            ? `The transfer of ${row.domain_name} to ${row.target_email} can be stopped for longer than we said before.`
            : `${row.target_email} accepted the domain ${row.domain_name}.`,
          `It moves at ${
            when(row.cooloff_until!)
          }. Until then this link stops the transfer; no sign-in is needed, so ` +
          "do not pass this mail on.",
        ],
        link: { label: "Stop this transfer", href: link("stop", row, row.stop_kid!, row.stop_nonce!) },
      }

    const key = (row: Row): MailLayout | null =>
      row.status !== "accepted" || row.selector === null ? null : {
        subject: `Publish the new DKIM key of ${row.domain_name}`,
        paragraphs: [
          `You accepted ${row.domain_name} with a new DKIM key. It becomes yours at ${
            when(row.cooloff_until!)
          }, and its mail is signed with the new key from then on: publish this record in the domain's DNS before.`,
          ...recordLines(row),
          "The key that is in use now is not touched. If the transfer is stopped, the new key is dropped.",
        ],
      }

    const layoutOf = (kind: string, row: Row, now: number, to: To, args: Args): MailLayout | null =>
      kind === "transfer.invitation"
        ? invitation(row, now)
        : kind === "transfer.stop"
        ? stop(row, now, args.event)
        : kind === "transfer.key"
        ? key(row)
        : endings[kind]!(row, to, args)

    return transferMailKinds.map((kind): MailTemplate => ({
      kind,
      render: Effect.fnUntraced(function* ({ args, subjectId }) {
        const [row] = yield* sql<Row>`
          select t.id::text as id, domain_name, source_label, target_email, note, status, forced, expires_at,
            cooloff_until, accept_kid, accept_nonce, stop_kid, stop_nonce, k.selector, k.algorithm, k.public_key
          from transfers t left join dkim_keys k on k.domain_id = t.domain_id and k.transfer_id = t.id
          where t.id = ${subjectId}::uuid`
        if (row === undefined) return null
        const now = yield* Clock.currentTimeMillis
        const layout = layoutOf(kind, row, now, (args["to"] ?? "owner") as To, { event: "", ...args })
        return layout && rendered(layout, brand)
      }),
    }))
  })
