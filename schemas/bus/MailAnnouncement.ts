/** A message on `mailer.v1.send`, between processes of the program: mails that wait. The rows are the truth. */
import { Schema } from "effect"

export const MailAnnouncement = Schema.Union([
  Schema.Struct({ mail_id: Schema.String }),
  Schema.Struct({ mail_ids: Schema.Array(Schema.String) }),
])
export type MailAnnouncement = typeof MailAnnouncement.Type
