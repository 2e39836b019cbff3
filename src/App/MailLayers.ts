/** Outgoing mail and Slack messages. */
import { Effect, Layer } from "effect"
import { noticeTemplate } from "../../services/decisions/NoticeMails/NoticeTemplate.ts"
import { requestTemplates } from "../../services/requests/RequestMail.ts"
import { notificationTemplate } from "../../services/notifications/NotificationMail.ts"
import { SlackMessages } from "../../services/notifications/SlackMessages.ts"
import { Brand } from "../../services/platform/Brand.ts"
import { MailTemplates } from "../../services/platform/mail/Mails.ts"
import { MailTransport } from "../../services/platform/mail/MailTransport.ts"
import { mailConnections } from "../../services/platform/mail/OutgoingMails.ts"
import { transferTemplates } from "../../services/transfers/TransferMails.ts"
import type { AppConfig } from "../AppConfig.ts"
import { DevMailbox } from "../embedded/DevMailbox.ts"
import { SlackSender } from "../workers/SlackSender.ts"
import { Mailer } from "../workers/Mailer.ts"

/** The mail templates of all domains. */
const mailTemplates = (config: AppConfig, publicUrl: URL) =>
  Layer.effect(
    MailTemplates,
    Effect.map(
      Effect.all([
        transferTemplates(publicUrl),
        requestTemplates(new URL(config.portalUrl ?? publicUrl)),
        noticeTemplate(publicUrl),
      ]),
      ([ofTransfers, ofRequests, ofNotices]) => [
        notificationTemplate(publicUrl, config.brand),
        ...ofTransfers,
        ...ofRequests,
        ofNotices,
      ],
    ),
  )

/** The workers of the role `mail`: mails, by SMTP or into the dev mailbox, and Slack messages. */
export const mail = (config: AppConfig, publicUrl: URL) => {
  const { home, mailFrom: from, smtpUrl: url } = config
  const slack = SlackMessages.layer({
    hosts: config.slackHosts,
    publicUrl,
    timeoutMillis: config.webhooksTimeout,
  })
  const mailer = Mailer.layer.pipe(
    Layer.provide(mailTemplates(config, publicUrl)),
    Layer.provide(Layer.succeed(Brand, config.brand)),
    Layer.provide(
      url === null ? DevMailbox.layer({ home, from }) : MailTransport.smtp({ url, from, connections: mailConnections }),
    ),
  )
  return Layer.merge(mailer, SlackSender.layer.pipe(Layer.provide(slack)))
}
