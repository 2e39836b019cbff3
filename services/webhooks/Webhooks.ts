/**
 * Webhooks and the commands on them. Every change raises the version that claims name, so that after a change was
 * answered, nothing is claimed with the earlier values. The secret is in two answers and is sealed everywhere else;
 * values of headers and basic authentication are in no answer.
 */
import { Clock, Context, Effect, Layer, Redacted, Result } from "effect"
import type { SqlError } from "effect/sql"
import { type AccountId, type ApiKeyId, WebhookId } from "../../schemas/BrandedIds.ts"
import type { Credential } from "../../schemas/api/CredentialsApi.ts"
import type { EventType } from "../../schemas/mail/MailEvent.ts"
import type { BasicAuth, CustomHeader } from "../../schemas/mail/WebhookHeaders.ts"
import type {
  PausedBy,
  WebhookDetails,
  WebhookHealth,
  WebhookView,
  WebhookWithSecret,
} from "../../schemas/mail/Webhook.ts"
import type { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { WebhookHeld, WebhookLimit, WebhookNotFound } from "../../schemas/problems/WebhookProblems.ts"
import { HTTPValidationError } from "../../schemas/Validation.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Principals, who } from "../authentication/Principals.ts"
import { Notifications } from "../notifications/Notifications.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { WakeUps } from "../platform/messaging/WakeUps.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Jobs } from "../platform/messaging/Jobs.ts"
import { Outbound } from "../platform/Outbound.ts"
import { Vault } from "../platform/security/Vault.ts"
import { dueTopic } from "./Deliveries/DeliveryClaims.ts"
import { generateSecret } from "./Signer.ts"
import { headerFaults, headersAfter, removes } from "./Webhooks/HeaderRules.ts"
import type { SealedColumn } from "./Webhooks/SealedHeaders.ts"
import { shownUrl } from "./Webhooks/ShownUrl.ts"
import { transition, type WebhookCommand, type WebhookEvent } from "./Webhooks/WebhookTransition.ts"
import { cancelJob } from "./WebhookJobKinds.ts"
import { appPath } from "../platform/AppPaths.ts"

export interface WebhooksConfig {
  /** Webhooks that an account may have. */
  readonly perAccount: number
}

/** A webhook whose secret was just made, or brought. */
type NewSecret = WebhookWithSecret & { readonly secret: string }

interface ReadRow {
  readonly id: WebhookId
  readonly url: string
  readonly description: string | null
  readonly events: ReadonlyArray<EventType>
  readonly is_active: boolean
  readonly paused_at: Date | null
  readonly paused_by: PausedBy | null
  readonly header_names: ReadonlyArray<string>
  readonly basic_auth: boolean
  readonly honor_retry_after: boolean
  readonly rate_limit: number | null
  readonly created_at: Date
  readonly last_success_at: Date | null
  readonly last_failure_at: Date | null
  readonly failing_since: Date | null
}

interface DetailsRow extends ReadRow {
  readonly updated_at: Date
  readonly secret_made_at: Date | null
  readonly old_secret_until: Date | null
}

interface Row extends ReadRow {
  readonly version: number
  readonly secret_kid: string
  readonly secret: Uint8Array
  readonly headers_kid: string | null
  readonly headers: Uint8Array | null
  readonly basic_auth_kid: string | null
  readonly basic_auth_bytes: Uint8Array | null
}

const columns =
  `w.id, w.url, w.description, w.events, w.is_active, w.paused_at, w.paused_by, w.created_at, w.header_names, w.honor_retry_after,
  w.rate_limit, w.basic_auth is not null as basic_auth,
  h.last_success_at, h.last_failure_at, h.failing_since`

const noSecret = { kid: null, bytes: null }

const notPaused = { paused_at: null, paused_by: null }

/** Since when and by whom it is paused after the account's change. */
const pausedAfter = (
  row: Pick<ReadRow, "paused_at" | "paused_by">,
  isActive: boolean,
  events: ReadonlyArray<WebhookEvent>,
  now: Date,
): Pick<ReadRow, "paused_at" | "paused_by"> => {
  if (events.includes("paused")) return { paused_at: now, paused_by: "owner" }
  return isActive ? notPaused : row
}

const noAttempts = { last_success_at: null, last_failure_at: null, failing_since: null }

const healthOf = ({ failing_since, is_active, last_failure_at, last_success_at }: ReadRow): WebhookHealth => {
  if (!is_active) return "paused"
  if (failing_since !== null) return "failing"
  return last_success_at === null && last_failure_at === null ? "unused" : "healthy"
}

const viewOf = (row: ReadRow): WebhookView => ({
  id: row.id,
  url: row.url,
  description: row.description,
  events: row.events,
  is_active: row.is_active,
  paused_at: row.is_active ? null : row.paused_at?.toISOString() ?? null,
  paused_by: row.is_active ? null : row.paused_by,
  header_names: row.header_names,
  basic_auth: row.basic_auth,
  honor_retry_after: row.honor_retry_after,
  rate_limit: row.rate_limit,
  health: healthOf(row),
  last_success_at: row.last_success_at?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})

export class Webhooks extends Context.Service<Webhooks, {
  readonly create: (
    accountId: AccountId,
    webhook: {
      readonly url: string
      readonly events: ReadonlyArray<EventType>
      readonly description?: string | undefined
      readonly headers?: ReadonlyArray<CustomHeader> | undefined
      readonly basicAuth?: BasicAuth | undefined
      readonly honorRetryAfter?: boolean | undefined
      /** Deliveries a second; zero: any number. */
      readonly rateLimit?: number | undefined
      /** False: it begins paused. */
      readonly isActive?: boolean | undefined
      /** The secret that the account brings; without it one is made. */
      readonly secret?: string | undefined
    },
  ) => Effect.Effect<NewSecret, WebhookLimit | HTTPValidationError>
  /** JSON text of an array of `WebhookView`, newest first. */
  readonly list: (
    credential: Credential["Service"],
    includePaused: boolean,
  ) => Effect.Effect<string, InvalidCredentials>
  /** One webhook of the account, active or paused. */
  readonly get: (accountId: AccountId, id: WebhookId) => Effect.Effect<WebhookDetails, WebhookNotFound>
  readonly update: (
    accountId: AccountId,
    id: WebhookId,
    change: Omit<WebhookCommand & { _tag: "Update" }, "_tag">,
  ) => Effect.Effect<WebhookView, WebhookHeld | WebhookNotFound | HTTPValidationError>
  readonly remove: (accountId: AccountId, id: WebhookId) => Effect.Effect<void, WebhookNotFound>
  readonly rotate: (
    accountId: AccountId,
    id: WebhookId,
    overlapSeconds: number,
  ) => Effect.Effect<NewSecret, WebhookNotFound>
}>()("bailiwick/services/webhooks/Webhooks") {
  static readonly layer = (config: WebhooksConfig) => Layer.effect(Webhooks, make(config))
}

const make = Effect.fnUntraced(function* (config: WebhooksConfig) {
  const { reads, sql } = yield* Database
  const audit = yield* Audit
  const wakeUps = yield* WakeUps
  const jobs = yield* Jobs
  const notifications = yield* Notifications
  const outbound = yield* Outbound
  const principals = yield* Principals
  const vault = yield* Vault

  const urlFaults = (url: string) => {
    const checked = outbound.check(url)
    return Result.isFailure(checked) ? [{ field: "url", message: checked.failure.message }] : []
  }

  const refuse = (faults: ReadonlyArray<{ readonly field: string; readonly message: string }>) =>
    faults.length === 0 ? Effect.void : Effect.fail(
      new HTTPValidationError({
        detail: faults.map(({ field, message }) => ({
          loc: ["body", field],
          type: "value_error",
          msg: `Value error, ${message}`,
        })),
      }),
    )

  const seal = (row: string, column: SealedColumn, secret: string) =>
    vault.seal(Redacted.make(secret), { table: "webhooks", column, row })

  const sealHeaders = (row: string, headers: ReadonlyArray<CustomHeader> | undefined) =>
    headers === undefined || headers.length === 0 ? noSecret : seal(row, "headers", JSON.stringify(headers))

  const sealBasicAuth = (row: string, basicAuth: BasicAuth | undefined) =>
    basicAuth === undefined || removes(basicAuth) ? noSecret : seal(row, "basic_auth", JSON.stringify(basicAuth))

  const record = (accountId: AccountId, id: WebhookId, events: ReadonlyArray<WebhookEvent | "created">) =>
    audit.append(...events.map((event) => ({
      action: `webhook.${event}`,
      actor: `account:${accountId}`,
      subject: `webhook:${id}`,
      outcome: "done" as const,
    })))

  const load = Effect.fnUntraced(function* (accountId: AccountId, id: WebhookId) {
    const [row] = isUuid(id)
      ? yield* sql<Row>`
        select ${sql.literal(columns)}, w.version, w.secret_kid, w.secret, w.headers_kid, w.headers,
          w.basic_auth_kid, w.basic_auth as basic_auth_bytes
        from webhooks w left join webhook_health h on h.webhook_id = w.id
        where w.id = ${id}::uuid and w.account_id = ${accountId}::uuid and w.deleted_at is null for update of w`
      : []
    return row ?? (yield* new WebhookNotFound())
  })

  const create: Webhooks["Service"]["create"] = Effect.fn("Webhooks.create")(
    function* (accountId, webhook) {
      const { basicAuth, headers, honorRetryAfter = false, isActive = true, secret = generateSecret(), url } = webhook
      const nothing = { url, headerNames: [], basicAuth: false }
      yield* refuse([...urlFaults(url), ...headerFaults(nothing, webhook)])
      yield* sql`select from accounts where id = ${accountId}::uuid for no key update`
      const [owned] = yield* sql<{ n: number }>`
        select count(*)::int as n from webhooks where account_id = ${accountId}::uuid and deleted_at is null`
      if (owned!.n >= config.perAccount) {
        return yield* new WebhookLimit({ detail: `An account may have ${config.perAccount} webhooks.` })
      }
      const now = new Date(yield* Clock.currentTimeMillis)
      const id = WebhookId.make(yield* (yield* Ids).next)
      const sealed = seal(id, "secret", secret)
      const events = [...new Set(webhook.events)]
      const [description, rateLimit] = [webhook.description || null, webhook.rateLimit || null]
      const after = headersAfter(nothing, webhook)
      const paused = isActive ? notPaused : { paused_at: now, paused_by: "owner" as const }
      const [sealedHeaders, sealedAuth] = [sealHeaders(id, headers), sealBasicAuth(id, basicAuth)]
      yield* sql`
        insert into webhooks (id, account_id, url, description, events, is_active, version, secret_kid, secret,
          header_names, headers_kid, headers, basic_auth_kid, basic_auth, honor_retry_after, rate_limit, created_at,
          updated_at, paused_at, paused_by, secret_made_at)
        values (${id}::uuid, ${accountId}::uuid, ${url}, ${description}, ${events}::text[], ${isActive}, 1, ${sealed.kid},
          ${sealed.bytes}, ${[...after.headerNames]}::text[], ${sealedHeaders.kid}, ${sealedHeaders.bytes},
          ${sealedAuth.kid}, ${sealedAuth.bytes}, ${honorRetryAfter}, ${rateLimit}, ${now}, ${now},
          ${paused.paused_at}, ${paused.paused_by}, ${now})`
      yield* sql`
        insert into webhook_lanes (webhook_id, account_id, paused) values (${id}::uuid, ${accountId}::uuid, ${!isActive})`
      yield* record(accountId, id, isActive ? ["created"] : ["created", "paused"])
      const kept = { header_names: after.headerNames, basic_auth: after.basicAuth, honor_retry_after: honorRetryAfter }
      const shown = { id, url, description, events, is_active: isActive, rate_limit: rateLimit, created_at: now }
      const row = { ...shown, ...kept, ...paused, ...noAttempts }
      return { ...viewOf(row), secret }
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
  )

  const list: Webhooks["Service"]["list"] = Effect.fn("Webhooks.list")(function* (credential, includePaused) {
    const rows = yield* reads<{ readonly key_id: ApiKeyId | null } & (ReadRow | { readonly id: null })>`
      with who as (${who(reads, credential)})
      select who.key_id::text, ${reads.literal(columns)} from who
      left join webhooks w
        on w.account_id = who.account_id and w.deleted_at is null and (w.is_active or ${includePaused})
      left join webhook_health h on h.webhook_id = w.id
      order by w.created_at desc, w.id desc`.pipe(Effect.orDie)
    yield* principals.seen(rows[0])
    return JSON.stringify(rows.flatMap((row) => row.id === null ? [] : [viewOf(row)]))
  })

  const get: Webhooks["Service"]["get"] = Effect.fn("Webhooks.get")(function* (accountId, id) {
    const [row] = isUuid(id)
      ? yield* reads<DetailsRow>`
        select ${reads.literal(columns)}, w.updated_at, w.secret_made_at, w.old_secret_until
        from webhooks w left join webhook_health h on h.webhook_id = w.id
        where w.id = ${id}::uuid and w.account_id = ${accountId}::uuid and w.deleted_at is null`.pipe(Effect.orDie)
      : []
    if (row === undefined) return yield* new WebhookNotFound()
    const until = row.old_secret_until
    const overlaps = until !== null && until.getTime() > (yield* Clock.currentTimeMillis)
    return {
      ...viewOf(row),
      updated_at: row.updated_at.toISOString(),
      secret_made_at: row.secret_made_at?.toISOString() ?? null,
      overlap_until: overlaps ? until.toISOString() : null,
    }
  })

  /**
   * Pausing, resuming and deleting change only the webhook's queue state (`webhook_lanes`), whatever number of
   * deliveries waits.
   */
  const updateQueueState = (
    id: WebhookId,
    events: ReadonlyArray<WebhookEvent>,
    now: Date,
  ): Effect.Effect<unknown, SqlError.SqlError> => {
    if (events.includes("deleted")) return sql`delete from webhook_lanes where webhook_id = ${id}::uuid`
    if (events.includes("paused")) return sql`update webhook_lanes set paused = true where webhook_id = ${id}::uuid`
    if (!events.includes("resumed")) return Effect.void
    // Do not compute the next due time here: a concurrent settlement could add an earlier one. The scan recomputes it.
    return Effect.andThen(
      sql`update webhook_lanes set paused = false, next_due_at = ${now} where webhook_id = ${id}::uuid`,
      sql.afterCommit(wakeUps.notify(dueTopic)),
    )
  }

  const tellPaused = (accountId: AccountId, id: WebhookId, url: string) =>
    notifications.announce({
      accountId,
      category: "alerts",
      severity: "info",
      title: "A webhook was paused",
      body: `The webhook to ${shownUrl(url)} is paused: what is due waits until it is resumed; events that arrive ` +
        "meanwhile make no delivery.",
      href: appPath("webhook", { webhook_id: id }),
      coalesceKey: `webhook-paused.${id}`,
    })

  const update: Webhooks["Service"]["update"] = Effect.fn("Webhooks.update")(
    function* (accountId, id, change) {
      if (change.url !== undefined) yield* refuse(urlFaults(change.url))
      const row = yield* load(accountId, id)
      const before = {
        url: row.url,
        description: row.description,
        events: row.events,
        isActive: row.is_active,
        headerNames: row.header_names,
        basicAuth: row.basic_auth,
        honorRetryAfter: row.honor_retry_after,
        rateLimit: row.rate_limit,
      }
      yield* refuse(headerFaults(before, change))
      const { state, events } = transition(before, { _tag: "Update", ...change })
      if (events.length === 0) return viewOf(row)
      if (events.includes("resumed") && row.paused_by === "operator") {
        return yield* new WebhookHeld({
          detail: "Only an operator can resume it. Ask the operator of this installation.",
        })
      }
      const now = new Date(yield* Clock.currentTimeMillis)
      const paused = pausedAfter(row, state.isActive, events, now)
      const judgedAnew = events.includes("resumed") || state.url !== row.url
      const headers = change.headers === undefined
        ? { kid: row.headers_kid, bytes: row.headers }
        : sealHeaders(id, change.headers)
      const basicAuth = change.basicAuth === undefined
        ? { kid: row.basic_auth_kid, bytes: row.basic_auth_bytes }
        : sealBasicAuth(id, change.basicAuth)
      yield* sql`
        update webhooks set url = ${state.url}, description = ${state.description},
          events = ${[...state.events]}::text[], is_active = ${state.isActive},
          header_names = ${[...state.headerNames]}::text[], headers_kid = ${headers.kid}, headers = ${headers.bytes},
          basic_auth_kid = ${basicAuth.kid}, basic_auth = ${basicAuth.bytes}, honor_retry_after = ${state.honorRetryAfter},
          rate_limit = ${state.rateLimit},
          paused_at = ${paused.paused_at}, paused_by = ${paused.paused_by},
          judged_from = case when ${judgedAnew} then ${now} else judged_from end,
          version = version + 1, updated_at = ${now}
        where id = ${id}::uuid and version = ${row.version}`
      yield* updateQueueState(id, events, now)
      yield* record(accountId, id, events)
      if (events.includes("paused")) yield* tellPaused(accountId, id, state.url)
      return viewOf({
        ...row,
        url: state.url,
        description: state.description,
        events: state.events,
        is_active: state.isActive,
        paused_at: paused.paused_at,
        paused_by: paused.paused_by,
        header_names: state.headerNames,
        basic_auth: state.basicAuth,
        honor_retry_after: state.honorRetryAfter,
        rate_limit: state.rateLimit,
      })
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
  )

  const remove: Webhooks["Service"]["remove"] = Effect.fn("Webhooks.remove")(
    function* (accountId, id) {
      const row = yield* load(accountId, id)
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        update webhooks set is_active = false, deleted_at = ${now}, updated_at = ${now}, version = version + 1,
          secret = ''::bytea, old_secret_kid = null, old_secret = null, old_secret_until = null,
          headers_kid = null, headers = null, basic_auth_kid = null, basic_auth = null
        where id = ${id}::uuid and version = ${row.version}`
      yield* updateQueueState(id, ["deleted"], now)
      yield* jobs.add(cancelJob, { webhook_id: id, deleted_at: now.toISOString() })
      yield* record(accountId, id, ["deleted"])
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
  )

  const rotate: Webhooks["Service"]["rotate"] = Effect.fn("Webhooks.rotate")(
    function* (accountId, id, overlapSeconds) {
      const row = yield* load(accountId, id)
      const now = yield* Clock.currentTimeMillis
      const current = vault.open({ kid: row.secret_kid, bytes: row.secret }, {
        table: "webhooks",
        column: "secret",
        row: id,
      })
      const secret = generateSecret()
      const sealed = seal(id, "secret", secret)
      const old = seal(id, "old_secret", Redacted.value(current))
      yield* sql`
        update webhooks set secret_kid = ${sealed.kid}, secret = ${sealed.bytes}, old_secret_kid = ${old.kid},
          old_secret = ${old.bytes}, old_secret_until = ${new Date(now + overlapSeconds * 1000)},
          secret_made_at = ${new Date(now)}, version = version + 1, updated_at = ${new Date(now)}
        where id = ${id}::uuid and version = ${row.version}`
      yield* record(accountId, id, ["secret-rotated"])
      return { ...viewOf(row), secret }
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
  )

  return Webhooks.of({ create, list, get, update, remove, rotate })
})
