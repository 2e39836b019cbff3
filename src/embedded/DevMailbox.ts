/**
 * The mail transport without SMTP_URL: writes each message as an `.eml` file in `mailbox` of the home, for this user
 * alone. A repeated message replaces its file, as readers take it for the same message.
 */
import { Effect, Layer } from "effect"
import { createTransport } from "nodemailer"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { MailSender } from "../../services/platform/mail/MailSender.ts"
import { MailTransport, messageOf, type OutgoingMail } from "../../services/platform/mail/MailTransport.ts"
import { readEml, type ReadMail } from "./Eml.ts"
import { writePrivate } from "./Home.ts"

/** A mail's id, which is also its file's name. */
const id = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const folderOf = (home: string) => join(home, "mailbox")

export const DevMailbox = {
  layer: (options: { readonly home: string; readonly from: MailSender }) =>
    Layer.effect(
      MailTransport,
      Effect.sync(() => {
        const folder = folderOf(options.home)
        const composer = createTransport({ streamTransport: true, buffer: true, newline: "windows" })
        const deliver = Effect.fnUntraced(function* (mail: OutgoingMail) {
          const { message } = yield* Effect.tryPromise(() => composer.sendMail(messageOf(options.from, mail)))
          yield* Effect.try(() => {
            mkdirSync(folder, { recursive: true, mode: 0o700 })
            writePrivate(join(folder, `${mail.id}.eml`), message as Buffer)
          })
          return { _tag: "Sent" as const }
        }, Effect.catch(() => Effect.succeed({ _tag: "Later" as const, error: "the mailbox cannot be written" })))
        return MailTransport.of({ from: options.from, deliver })
      }),
    ),
}

/** The newest messages of the mailbox, newest first. */
export const newest = (
  home: string,
  limit: number,
): ReadonlyArray<{ readonly id: string; readonly mail: ReadMail }> => {
  const folder = folderOf(home)
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((file) => file.endsWith(".eml") && id.test(file.slice(0, -4)) ? [file] : [])
    .sort().reverse().slice(0, limit)
    .map((file) => ({ id: file.slice(0, -4), mail: readEml(readFileSync(join(folder, file))) }))
}

/** One message, or null where there is none of that id. */
export const message = (home: string, mailId: string): ReadMail | null => {
  const file = join(folderOf(home), `${mailId}.eml`)
  return id.test(mailId) && existsSync(file) ? readEml(readFileSync(file)) : null
}
