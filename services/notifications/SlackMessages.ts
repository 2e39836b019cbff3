/**
 * The channel `slack`: a message is a row, added in the transaction of the notice, and posted to the incoming webhook
 * that the account has when the message is sent. The account sets the URL, so its host must be one that the operator
 * allows, and the address policy applies. An attempt without an answer is repeated, so a message may arrive twice; after
 * the sixth attempt it is given up.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import type { AccountId, NotificationId } from "../../schemas/BrandedIds.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { afterCommit, insertion, write } from "../platform/database/UnitOfWork.ts"
import {
  type ClaimedMessage,
  type MessageOutcome,
  type MessageRows,
  type Outgoing,
  outgoing,
} from "../platform/messaging/Outgoing.ts"
import { visible } from "../platform/Visible.ts"
import { Outbound, type Outcome } from "../platform/Outbound.ts"
import type { Notice } from "./Notice.ts"

export interface SlackConfig {
  /** Host names that a Slack webhook may have. */
  readonly hosts: ReadonlyArray<string>
  /** The program's public origin. */
  readonly publicUrl: URL
  /** The timeout of one post, as Outbound has it. */
  readonly timeoutMillis: number
}

/** The topic of the wake-up signal that due messages send. */
export const slackTopic = "slack"

/** Slack's answers that a repetition cannot change: the webhook is gone, or its channel. */
const final = new Set([400, 401, 403, 404, 410])

interface SlackRow extends ClaimedMessage {
  readonly account_id: AccountId
  readonly title: string
  readonly body: string
  readonly href: string
}

/** Escapes the three characters that Slack names, so that the text cannot begin a mention or a link. */
const escaped = (text: string) => visible(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** The JSON that Slack gets. */
export const slackBody = ({ body, href, title }: Pick<SlackRow, "title" | "body" | "href">, publicUrl: URL): string =>
  JSON.stringify({
    text: [`*${escaped(title)}*`, escaped(body), `<${escaped(new URL(href, publicUrl).href)}>`].join("\n"),
  })

/** Adds messages in the current transaction (UnitOfWork.ts). */
export const slackMessages = (sql: PgClient.PgClient, wakeUps: WakeUps["Service"]) => {
  const added = insertion(sql, "slack_messages", {
    id: "uuid",
    account_id: "uuid",
    severity: "text",
    title: "text",
    body: "text",
    href: "text",
    created_at: "timestamptz",
    not_before: "timestamptz",
  })
  return (entries: ReadonlyArray<{ readonly id: NotificationId; readonly notice: Notice }>, now: Date) => {
    const rows = entries.map(({ id, notice: { accountId: account_id, body, href, severity, title } }) => ({
      id,
      account_id,
      severity,
      title,
      body,
      href,
      created_at: now,
      not_before: now,
    }))
    return Effect.andThen(write(sql, added, rows), afterCommit(sql, wakeUps.notify(slackTopic)))
  }
}

// An account with messages in flight waits: a Slack webhook that does not answer holds up one batch, not all of them.
const rowsOf = (sql: PgClient.PgClient): MessageRows => ({
  table: "slack_messages",
  due: sql`and t.state = 'pending' and not exists (
    select from slack_messages o where o.account_id = t.account_id and o.claim is not null)`,
  unsent: sql``,
  never: sql`not_before`,
  more: () => sql``,
})

const outcomeOf = ({ error, status }: Outcome): MessageOutcome => {
  if (error === null && status !== null && status >= 200 && status < 300) return { _tag: "Sent" }
  const reason = error ?? `status ${status}`
  return { _tag: status !== null && final.has(status) ? "Refused" : "Later", error: reason }
}

const make = Effect.fnUntraced(function* ({ hosts, publicUrl, timeoutMillis }: SlackConfig) {
  const { sql } = yield* Database
  const outbound = yield* Outbound
  const allowed = new Set(hosts.map((host) => host.toLowerCase()))

  const post = (row: SlackRow, url: string) =>
    Effect.promise(() =>
      outbound.post({
        url,
        headers: { "content-type": "application/json", "user-agent": "Bailiwick" },
        body: slackBody(row, publicUrl),
        keepOnSuccess: 0,
        keepOnFailure: 0,
      })
    )

  const prepare = Effect.fnUntraced(function* (row: SlackRow) {
    const refused = (error: string) => () => Effect.succeed<MessageOutcome>({ _tag: "Refused", error })
    const [account] = yield* sql<{ url: string }>`
      select slack_webhook_url as url from accounts
      where id = ${row.account_id}::uuid and status = 'active' and not removed and slack_webhook_url is not null`
    if (account === undefined) return refused("the account has no Slack webhook")
    const { url } = account
    if (!allowed.has(URL.parse(url)?.hostname ?? "")) return refused("not one of SLACK_HOSTS")
    return (giveUp: Effect.Effect<void>) =>
      // A message without an answer by then is due again at once.
      Effect.raceFirst(
        Effect.interruptible(Effect.map(post(row, url), outcomeOf)),
        Effect.interruptible(Effect.as(giveUp, null)),
      )
  })

  return yield* outgoing<SlackRow>(sql, {
    name: "slack",
    rows: rowsOf(sql),
    batch: 16,
    leaseMillis: timeoutMillis + 20_000,
    attemptMillis: timeoutMillis + 10_000,
    retryMillis: [10, 40, 160, 640, 2_560].map((seconds) => seconds * 1_000),
    keptMillis: 30 * 86_400_000,
    prepare,
    noted: () => Effect.void,
  })
})

/** Posts the due messages of all accounts. */
export class SlackMessages extends Context.Service<SlackMessages, Outgoing>()(
  "bailiwick/services/notifications/SlackMessages",
) {
  static readonly layer = (config: SlackConfig) => Layer.effect(SlackMessages, make(config))
}
