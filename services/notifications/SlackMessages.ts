/**
 * The channel `slack`: a message is a row, added in the transaction of the notice, and posted to the incoming webhook
 * that the account has when the message is sent. The account sets the URL, so its host must be one that the operator
 * allows, and the address policy applies. Claimed, posted, settled; an attempt without an answer is repeated, so a
 * message may arrive twice; after the sixth attempt it is given up.
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { faultPoint } from "../platform/Failpoints.ts"
import { afterCommit, insertion, write } from "../platform/database/UnitOfWork.ts"
import {
  claimDue,
  claimed,
  freeExpired,
  type LeasedTable,
  release,
  settleFailed,
  stopTime,
} from "../platform/database/Leases.ts"
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

const table: LeasedTable = { table: "slack_messages", key: "id", keyType: "uuid" }
const attemptsInAll = 6
const batch = 16
const keptMillis = 30 * 24 * 60 * 60_000
/** Rows that one statement deletes. */
const forgotten = 1_000

/** The delay after attempt n: 10 s, 40 s, 160 s, 640 s, 2,560 s. */
const patienceMillis = (attempts: number) => 2_500 * 4 ** attempts

/** Slack's answers that a repetition cannot change: the webhook is gone, or its channel. */
const final = new Set([400, 401, 403, 404, 410])

interface SlackRow {
  readonly id: string
  readonly account_id: string
  readonly title: string
  readonly body: string
  readonly href: string
  readonly attempts: number
}

/** Escapes the three characters that Slack names, so that the text cannot begin a mention or a link. */
const escaped = (text: string) => visible(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** The JSON that Slack gets. */
export const slackBody = ({ body, href, title }: Pick<SlackRow, "title" | "body" | "href">, publicUrl: URL): string =>
  JSON.stringify({
    text: [`*${escaped(title)}*`, escaped(body), `<${escaped(new URL(href, publicUrl).href)}>`].join("\n"),
  })

/** Adds messages in the current transaction (UnitOfWork.ts). */
export const slackMessages = (sql: PgClient.PgClient, bells: WakeUps["Service"]) => {
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
  return (entries: ReadonlyArray<{ readonly id: string; readonly notice: Notice }>, now: Date) => {
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
    return Effect.andThen(write(sql, added, rows), afterCommit(sql, bells.ring(slackTopic)))
  }
}

type Verdict = { readonly state: "sent" } | { readonly state: "failed" | "later"; readonly error: string }

const verdictOf = ({ error, status }: Outcome): Verdict => {
  if (error === null && status !== null && status >= 200 && status < 300) return { state: "sent" }
  const reason = error ?? `status ${status}`
  return { state: status !== null && final.has(status) ? "failed" : "later", error: reason }
}

export class SlackMessages extends Context.Service<SlackMessages, {
  /** Posts a batch of due messages; returns whether there may be more. */
  readonly work: Effect.Effect<boolean, SqlError.SqlError>
  /** Frees claims whose lease ended. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
  /** Deletes messages that ended 30 days ago. */
  readonly prune: Effect.Effect<void, SqlError.SqlError>
}>()("bailiwick/services/notifications/SlackMessages") {
  static readonly layer = (config: SlackConfig) => Layer.effect(SlackMessages, make(config))
}

const make = Effect.fnUntraced(function* ({ hosts, publicUrl, timeoutMillis }: SlackConfig) {
  const { sql } = yield* Database
  const outbound = yield* Outbound
  const allowed = new Set(hosts.map((host) => host.toLowerCase()))

  const target = Effect.fnUntraced(function* (accountId: string) {
    const [row] = yield* sql<{ url: string }>`
      select slack_webhook_url as url from accounts
      where id = ${accountId}::uuid and status = 'active' and not removed and slack_webhook_url is not null`
    return row?.url ?? null
  })

  const attempt = Effect.fnUntraced(function* (row: SlackRow): Effect.fn.Return<Verdict, SqlError.SqlError> {
    const url = yield* target(row.account_id)
    if (url === null) return { state: "failed", error: "the account has no Slack webhook" }
    if (!allowed.has(URL.parse(url)?.hostname ?? "")) return { state: "failed", error: "not one of SLACK_HOSTS" }
    return verdictOf(
      yield* Effect.promise(() =>
        outbound.post({
          url,
          headers: { "content-type": "application/json", "user-agent": "Bailiwick" },
          body: slackBody(row, publicUrl),
          keepOnSuccess: 0,
          keepOnFailure: 0,
        })
      ),
    )
  })

  const settle = Effect.fnUntraced(function* (row: SlackRow & { readonly claim: bigint }, verdict: Verdict) {
    if (verdict.state === "later" && row.attempts < attemptsInAll) {
      const afterMillis = patienceMillis(row.attempts)
      return yield* settleFailed(sql, table, row.claim, [{ key: row.id, afterMillis, error: verdict.error }])
    }
    const now = new Date(yield* Clock.currentTimeMillis)
    yield* sql`
      update slack_messages set claim = null, lease_until = null, ended_at = ${now},
        state = ${verdict.state === "sent" ? "sent" : "failed"},
        last_error = ${verdict.state === "sent" ? null : verdict.error}
      where id = ${row.id}::uuid and claim = ${row.claim}`
  })

  // An account with messages in flight waits: a Slack webhook that does not answer holds up one batch, not all of them.
  const claim = claimDue<SlackRow>(sql, table, {
    leaseMillis: timeoutMillis + 20_000,
    limit: batch,
    also: sql`and t.state = 'pending' and not exists (
      select from slack_messages o where o.account_id = t.account_id and o.claim is not null)`,
  })

  const post = Effect.fnUntraced(function* (due: Effect.Success<typeof claim>) {
    if (due.length > 0) yield* faultPoint("slack.claimed")
    yield* Effect.forEach(
      due,
      Effect.fnUntraced(function* (row) {
        const verdict = yield* attempt(row)
        yield* faultPoint("slack.answered")
        yield* settle(row, verdict)
        yield* faultPoint("slack.settled")
      }),
      { concurrency: batch, discard: true },
    )
    return due.length > 0
  })

  const work = claimed({
    claim,
    work: post,
    giveBack: ([first]) => first === undefined ? Effect.void : release(sql, table, first.claim),
    patience: stopTime,
  }).pipe(Effect.withSpan("SlackMessages.work"))

  return SlackMessages.of({
    work,
    free: Effect.asVoid(freeExpired(sql, table)),
    prune: Effect.gen(function* () {
      const before = new Date((yield* Clock.currentTimeMillis) - keptMillis)
      const pruned = sql`delete from slack_messages where id in (
        select id from slack_messages where ended_at < ${before} limit ${forgotten} for update skip locked) returning 1`
      yield* Effect.repeat(pruned, { until: (rows) => rows.length < forgotten })
    }),
  })
})
