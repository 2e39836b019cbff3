/** The mail of a notification: its text, and a link into the app. */
import { Effect } from "effect"
import type { NotificationId } from "../../schemas/BrandedIds.ts"
import { html } from "../platform/mail/Html.ts"
import { type BrandShape, defaultBrand } from "../platform/Brand.ts"
import { mailButton, mailHead, signature } from "../platform/mail/MailLayout.ts"
import type { MailTemplate, NewMail } from "../platform/mail/Mails.ts"
import type { Notice } from "./Notice.ts"

const kind = "notification"

/** The mail of a notice, for `Mails.add`. */
export const notificationMail = (id: NotificationId, recipient: string, notice: Notice): NewMail => ({
  kind,
  subjectId: id,
  recipient,
  args: { title: notice.title, body: notice.body, href: notice.href, severity: notice.severity },
})

/** The template, for `MailTemplates`; `publicUrl` is the program's public origin. */
export const notificationTemplate = (publicUrl: URL, brand: BrandShape = defaultBrand): MailTemplate => ({
  kind,
  render: ({ args }) =>
    Effect.sync(() => {
      const { body, href, title } = args
      const link = new URL(href ?? "/", publicUrl).href
      const subject = title ?? ""
      const paragraphs = (body ?? "").split("\n").filter((line) => line !== "")
      return {
        subject,
        text: `${subject}\n\n${body ?? ""}\n\n${link}\n${signature(brand)}`,
        html: html`
          <!doctype html>
          <html lang="en">
            <head>
              <meta charset="utf-8">
              <title>${subject}</title>
            </head>
            <body>
          ${mailHead(brand)}<h1>${subject}</h1>
          ${paragraphs.map((line) => html`<p>${line}</p>`)}
          ${mailButton({ href: link, label: "Open it" }, brand)}
            </body>
          </html>
        `.text,
      }
    }),
})
